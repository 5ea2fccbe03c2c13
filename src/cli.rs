//! vdoctl.
