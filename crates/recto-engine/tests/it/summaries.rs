//! Summaries by a model: made once for each content, whoever wants them and whatever dies; and a page that goes out
//! without them where there are none.

mod asked; // what a model is told, and which model
pub(crate) mod lab; // a conversation whose results are to be summarized
mod made; // what stands on the page, and when
mod once; // servers and crashes
mod refused; // answers that are no summaries
mod priced; // which way is cheaper
