//! Parts that patterns of texts are made of.

/// A time.
macro_rules! time {
    () => {
        r"[0-9]{1,20}(\.[0-9]{1,18})? *([sS]|[mM][sS]|[uUµ][sS]|[nN][sS])"
    };
}

/// A rate.
macro_rules! rate {
    () => {
        r"[0-9]{1,20}(\.[0-9]{1,18})? *([gGmMkK]?[bB][iI][tT])(/s|ps)?"
    };
}

/// A size.
macro_rules! size {
    () => {
        r"[0-9]{1,20}(\.[0-9]{1,18})? *([gGmMkK]?[iI]?[bB])"
    };
}

/// A share.
macro_rules! share {
    () => {
        r"([0-9]{1,20}(\.[0-9]{1,18})? *%|[01](\.[0-9]{1,18})?)"
    };
}

/// The limit of a queue.
macro_rules! queue {
    () => {
        concat!(
            r"default|unlimited|[0-9]{1,20}(\.[0-9]{1,18})?bdp|[0-9]{1,20}p|",
            $crate::form::pattern::size!()
        )
    };
}

pub(crate) use {queue, rate, share, size, time};
