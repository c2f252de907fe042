"""The root of the tests and of the lessons, which pytest runs from here."""
