"""Tables and rows as Markdown, LaTeX and CSV."""
