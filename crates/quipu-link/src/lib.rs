//! Links: rate, delay, jitter, loss and queues, sans-IO.
