"""The schedule primitives, one a file: meaning, rules, rewrite, and how it is recorded.

Every file of this folder is loaded, and `@primitive` makes its function a method of Schedule.
"""

import os
from importlib import import_module

for _file in sorted(os.listdir(__path__[0])):
    if _file.endswith(".py") and _file != "__init__.py":
        import_module(f"{__name__}.{_file[:-3]}")
