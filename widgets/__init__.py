"""Views of what the compiler did, as Jupyter widgets and as HTML files with no kernel.

Import name: `mlc_lab_widgets`. One module a view, one JavaScript file a view (in `js/`), one shared
style. A view draws a recording (`mlc_lab.observe.recording`) and contains no compiler logic.
"""
