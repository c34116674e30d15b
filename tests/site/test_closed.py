"""What checks the built site sees: dead links, lost places, requests to elsewhere."""

from xml.etree import ElementTree

import pytest

import evenkeel as ek
from docs import picture
from docs.closed_site import faults
from evenkeel.simulate.generators import expansion

GOOD = """
<link rel="stylesheet" href="style.css?digest=1"><img src="data:image/png;base64,AA==">
<h1 id="top">x</h1><a href="#top">x</a><a href="other.html#there">x</a><a href="https://a.example">x</a>
"""


@pytest.fixture
def site(tmp_path):
    """A folder with a good page, another one and a style."""
    folder = tmp_path.resolve()
    (folder / "index.html").write_text(GOOD)
    (folder / "other.html").write_text('<p id="there"></p><a href="index.html">x</a>')
    (folder / "style.css").write_text("p { background: url(data:image/png;base64,AA==) }")
    return folder


def test_a_closed_site_is_good(site):
    assert faults(site) == []


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ('<a href="gone.html">x</a>', "bad.html: gone.html leads nowhere"),
        ('<a href="other.html#here">x</a>', "bad.html: other.html#here is no place on that page"),
        ('<a href="#here">x</a>', "bad.html: #here is no place on that page"),
        ('<script src="//cdn.example/x.js">', "bad.html: fetches //cdn.example/x.js"),
        (
            '<link rel="preload" href="https://a.example/f">',
            "bad.html: fetches https://a.example/f",
        ),
        ('<p style="background: url(http://a.example/i)">', "bad.html: fetches http://a.example/i"),
    ],
)
def test_what_is_wrong_with_a_page_is_told(site, bad, told):
    (site / "bad.html").write_text(bad)
    assert faults(site) == [told]


def test_a_style_fetches_nothing_from_elsewhere(site):
    (site / "style.css").write_text('@import "https://fonts.example/f.css";')
    assert faults(site) == ["style.css: fetches https://fonts.example/f.css"]


def test_the_picture_is_a_closed_drawing():
    cluster = expansion(400, 40)
    text = picture.picture(cluster, ek.solve(cluster, goals=ek.Goals(level=0.1)))
    bars = [node for node in ElementTree.fromstring(text).iter() if node.tag.endswith("path")]
    drawn = [bar.attrib["d"].count("M") for bar in bars if bar.attrib["class"] != "line"]
    assert sum(drawn) == 2 * 40
    assert "href" not in text


def test_the_picture_of_the_readme_is_well_formed():
    assert ElementTree.parse(picture.FILE).getroot().tag.endswith("svg")
