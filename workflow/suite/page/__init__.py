"""One self-contained page of a scale: tables that sort, what is behind each cell, figures, differences and claims."""
