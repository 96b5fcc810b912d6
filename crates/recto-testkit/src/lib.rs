//! What Recto's own tests share.
