//! A client and a server in virtual time, random operation scripts and foreign drivers, for tests and benches.
