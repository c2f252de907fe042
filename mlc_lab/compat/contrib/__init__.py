"""What of TVM's `contrib` the notes and tutorials use: `utils.tempdir` and `cblas`."""
