"""Tests of the lowering passes."""
