"""Which packages and data an installation consists of; all else is in pyproject.toml.

This is code because `packages.find` cannot say that the folder `widgets/` is installed under the
import name `mlc_lab_widgets`, nor that each folder of lessons goes to its own place.
"""

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


setup(
    packages=[*find_packages(include=["mlc_lab", "mlc_lab.*"]), *WIDGETS],
    package_dir={"mlc_lab_widgets": "widgets"},
    package_data={
        "": ["*.json", "*.npz"],
        "mlc_lab_widgets": ["bundles/*.js", "js/*.js", "js/*.css"],
    },
    data_files=list(lessons()),
)
