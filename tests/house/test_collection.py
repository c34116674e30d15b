"""Collection: no folder of tests is left out."""

from fnmatch import fnmatch

from tests.support import places


def test_every_folder_of_tests_is_run(request):
    """Folders of some names are passed over without a word; by default ``build`` is one of them."""
    patterns = request.config.getini("norecursedirs")
    folders = {file.parent for file in (places.ROOT / "tests").rglob("test_*.py")}
    passed_over = [
        str(folder)
        for folder in sorted(folders)
        for name in folder.relative_to(places.ROOT).parts
        if any(fnmatch(name, one) for one in patterns)
    ]
    assert passed_over == []
