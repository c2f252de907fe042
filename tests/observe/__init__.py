"""Tests of recordings, measurements and what else observes the compiler."""
