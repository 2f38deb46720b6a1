//! A discrete-event simulator that moves datagrams between nodes in virtual time.
