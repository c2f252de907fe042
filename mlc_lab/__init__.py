"""MLC Lab: a tensor compiler one can see through."""
