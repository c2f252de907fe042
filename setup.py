"""Which packages and data an installation consists of; all else is in pyproject.toml.

This is code because `packages.find` cannot say that the folder `widgets/` is installed under the
import name `mlc_lab_widgets`, nor that each folder of lessons goes to its own place; and because
the README names pictures and pages by their places in the repository, which a page of a package
index does not know.
"""

import re
import runpy
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).resolve().parent
WIDGETS = ["mlc_lab_widgets", *(f"mlc_lab_widgets.{name}" for name in find_packages("widgets"))]


def lessons():
    """(installed folder, files) for each folder under notebooks/ with a lesson or its data."""
    kinds = ("*.ipynb", "*.py", "*.md", "*.csv", "*.npz")
    folders = [Path("notebooks"), *(p.relative_to(ROOT) for p in (ROOT / "notebooks").glob("**/"))]
    for folder in sorted(set(folders)):
        files = sorted(str(folder / f.name) for kind in kinds for f in (ROOT / folder).glob(kind))
        if files and ".ipynb_checkpoints" not in folder.parts:
            yield str(Path("share") / "mlc-lab" / folder), files


def extension():
    """(installed folder, files) for each folder of the JupyterLab extension."""
    made = runpy.run_path(str(ROOT / "widgets" / "extension.py"))
    for folder, files in made["files"]().items():
        yield str(made["PLACE"] / folder), [str(path.relative_to(ROOT)) for path in files]


def description():
    """The README with pictures and links that lead to the files of this version's tag."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    repository = re.search(r'^Repository = "(.*)"', project, re.M)[1]
    tag = "v" + re.search(r'^version = "(.*)"', project, re.M)[1]
    raw = repository.replace("//github.com/", "//raw.githubusercontent.com/")

    def absolute(link):
        base = f"{raw}/{tag}/" if link[1] else f"{repository}/blob/{tag}/"
        return f"{link[1]}[{link[2]}]({base}{link[3]})"

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.sub(r"(!?)\[([^]]*)\]\((?!https?:|#)([^)]+)\)", absolute, readme)


setup(
    long_description=description(),
    long_description_content_type="text/markdown",
    packages=[*find_packages(include=["mlc_lab", "mlc_lab.*"]), *WIDGETS],
    package_dir={"mlc_lab_widgets": "widgets"},
    package_data={
        "": ["*.json", "*.npz", "*.txt", "*.pyi", "py.typed"],
        "mlc_lab.language": ["*/LC_MESSAGES/*.mo"],
        "mlc_lab_widgets": ["bundles/*.js", "js/*.js", "js/*.css",
                            "labextension/*.json", "labextension/static/*.js"],
    },
    data_files=[*lessons(), *extension()],
)
