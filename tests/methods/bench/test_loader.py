"""The bench of the loader reads what it says, by both readers, and puts the reader back."""

import json

import numpy as np
from PIL import Image

from methods.bench import loader
from methods.data import imagenet, photograph


def test_both_readers_are_timed_and_the_step_beside_them(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("SUITE_DEVICE", "cpu")
    words = ["--photographs", "6", "--arch", "small_rn18_p10", "--batch", "2", "--repeats", "1", "--out", str(tmp_path / "l.json")]
    assert loader.main(words) == 0
    report = json.loads((tmp_path / "l.json").read_text())
    assert set(report["images_per_second"]["resized_crop_flip"]) == {"suite", "pillow"}
    assert len(report["step"]["rates"]) == 1
    assert imagenet.picture is photograph.picture
    assert "images per second and core" in capsys.readouterr().out


def test_the_photographs_are_like_those_of_imagenet(tmp_path):
    files = loader.photographs(tmp_path, 3)
    sizes = [path.stat().st_size for path, _ in files]
    assert all(Image.open(path).size == (500, 375) for path, _ in files)
    assert 70_000 < np.mean(sizes) < 160_000
