"""Figures, side by side with numpy, torch and TVM in one run. Each module is a script."""
