//! What Recto's own tests share: generated stories, a host that lives through them, and checks written apart from
//! the code they check.

pub mod check; // what must hold for every page, judged from its bytes
pub mod dialogue; // long dialogues with questions whose evidence is known
pub mod fake; // a provider that takes nothing the real ones would refuse
pub mod mixed; // conversations as odd as they come
pub mod postgres; // real servers, with standbys, that can be frozen and killed
pub mod property; // generated values with a fresh seed in each run
pub mod shared; // transcripts that are not part of the project
pub mod story; // generated conversations with everything that goes wrong in real ones
pub mod structure; // what a wary reader takes for structure on a page
pub mod world; // a host: appends, plans, commits, compiles, acknowledges
