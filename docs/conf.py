"""How Sphinx builds the site: ``make docs``."""

from importlib.metadata import version as installed

project = "Evenkeel"
author = "the Evenkeel authors"
copyright = f"{author}, Apache-2.0"
version = release = installed("evenkeel")

extensions = ["sphinx.ext.autodoc", "numpydoc", "myst_nb", "docs.closed_site"]
exclude_patterns = ["gallery.jupyter_cache", "package.md"]
suppress_warnings = ["myst.header"]

# a page says what stands where, in the words of the docstrings
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"members": True}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

# notebooks are executed beforehand, by docs/run_notebooks.py
nb_execution_mode = "off"
nb_ipywidgets_js = {}

html_theme = "pydata_sphinx_theme"
html_title = "Evenkeel"
html_copy_source = False
html_show_sourcelink = False
html_static_path = ["pictures"]
html_theme_options = {
    "navigation_depth": 2,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "search_bar_text": "Search",
}
