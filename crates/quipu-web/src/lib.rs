//! Web pages, browsers and page loads, sans-IO.
