"""What of TVM's `contrib` the notes and tutorials use: files, compilers, a library, drawings."""
