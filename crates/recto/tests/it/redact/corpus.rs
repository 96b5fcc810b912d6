//! Texts in which nothing is to be found.
