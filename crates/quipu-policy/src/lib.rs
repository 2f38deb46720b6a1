//! Everything a researcher swaps: views, decisions, and the policies that schedule streams, paths and acknowledgements.
