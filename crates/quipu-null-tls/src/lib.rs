//! A TLS seam without arithmetic, for virtual time only.
