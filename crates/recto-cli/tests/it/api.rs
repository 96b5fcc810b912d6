//! The API of `recto serve`, as a process of its own, asked over plain sockets. Every answer is held against what
//! `/openapi.json` says of its route.

mod live; // a server, and a client that checks what it is told
mod schema; // whether a value is what a schema says

mod at_once; // several ask at once
mod erased; // what goes while somebody looks
mod events; // what is told as it happens
mod examples; // what the documentation shows
mod facts; // what a client knows at a call
mod fuzzed; // what nobody thought of
mod mcp; // the tools of agents' programs
mod member_junction; // its names for overrides and messages
mod paging; // long lists
mod repeated; // retries and conflicts
mod routes; // each route
mod same; // the same as through the library
mod sessions; // deltas for providers that remember
mod tenants; // whose things are whose
mod wrong; // what can't be taken
