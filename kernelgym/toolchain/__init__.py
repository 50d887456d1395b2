"""The toolchain: the one place where sources become binaries."""
