"""Both readers of photographs give the same pixels, for every kind of file."""

import io

import numpy as np
import pytest
from PIL import Image

from methods.core.errors import UserError
from methods.data import photograph, sample
from methods.data.photograph import picture


def scene():
    """A picture with the detail of a photograph: a hundred CIFAR images side by side."""
    images = sample.read()[0]["train_images"][:100]
    sheet = images.reshape(10, 10, 32, 32, 3).swapaxes(1, 2).reshape(320, 320, 3)
    return Image.fromarray(sheet).resize((500, 375), Image.Resampling.BICUBIC)


JPEGS = {
    "full colour": {"quality": 95, "subsampling": 0},
    "usual": {"quality": 90, "subsampling": 2},
    "coarse": {"quality": 30, "subsampling": 2},
    "progressive": {"quality": 85, "progressive": True},
    "half": {"quality": 85, "subsampling": 1},
}


@pytest.mark.parametrize("options", JPEGS.values(), ids=list(JPEGS))
@pytest.mark.parametrize("size", [(500, 375), (333, 251), (17, 9), (1, 1)])
def test_the_fast_reader_gives_the_pixels_of_the_plain_one(tmp_path, options, size):
    file = tmp_path / "x.JPEG"
    scene().resize(size).save(file, "JPEG", **options)
    fast = photograph._quickly(file.read_bytes())
    assert fast is not None
    assert np.array_equal(fast, np.asarray(photograph._plainly(file)))
    assert np.array_equal(np.asarray(picture(file)), fast)


@pytest.mark.parametrize(("mode", "name"), [("L", "x.JPEG"), ("CMYK", "x.JPEG"), ("RGBA", "x.png"), ("P", "x.png"), ("RGB", "x.webp")])
def test_other_pictures_are_those_of_the_plain_reader(tmp_path, mode, name):
    scene().convert(mode).save(tmp_path / name)
    assert np.array_equal(np.asarray(picture(tmp_path / name)), np.asarray(photograph._plainly(tmp_path / name)))


def test_a_file_with_a_superfluous_tail_is_still_a_picture(tmp_path):
    stream = io.BytesIO()
    scene().save(stream, "JPEG")
    (tmp_path / "x.JPEG").write_bytes(stream.getvalue() + b"\0" * 50)
    assert np.array_equal(np.asarray(picture(tmp_path / "x.JPEG")), np.asarray(Image.open(stream).convert("RGB")))


def test_a_truncated_file_is_refused_by_both(tmp_path):
    scene().save(tmp_path / "x.JPEG", "JPEG")
    content = (tmp_path / "x.JPEG").read_bytes()
    (tmp_path / "x.JPEG").write_bytes(content[: len(content) // 2])
    assert photograph._quickly(content[: len(content) // 2]) is None
    with pytest.raises(UserError, match=r"x\.JPEG: unreadable or truncated image \(.*\); replace the file"):
        picture(tmp_path / "x.JPEG")
