//! A request as its policy lets it be seen: the log through the policy's screen, and all that goes beside it.

use crate::block::Facts;
use crate::error::Error;
use crate::format::ResponseFormat;
use crate::fragment::Fragments;
use crate::log::{Counted, Log};
use crate::redact::Screen;
use crate::request::Request;
use crate::tool::Tools;

/// What of a request has to be shown otherwise. A host that has seen to it beforehand pays nothing here.
#[derive(Debug, Default)]
pub(crate) struct Screened {
    log: Option<Log>,
    input: Option<Counted>,
    fragments: Option<Fragments>,
    tools: Option<Tools>,
    format: Option<ResponseFormat>,
    facts: Option<Facts>,
}

impl Screened {
    pub(crate) fn of(request: &Request<'_>) -> Result<Screened, Error> {
        let redact = &request.policy.redact;
        let mut screened = Screened::default();
        if !request.log.is_shown_by(redact) {
            let screen = Screen::of(redact)?.keyed(request.log.screen().key());
            screened.log = Some(request.log.clone().through(screen));
        }
        let log = screened.log.as_ref().unwrap_or(request.log);
        if screened.log.is_some() || !redact.is_nothing() {
            // Whoever drafted it may have seen more.
            screened.input = request.input.map(|input| log.shown_here(input));
        }
        let (screen, counter) = (log.screen(), log.counter());
        if screen.is_over_prompts() {
            screened.fragments = request.fragments.and_then(|it| it.through(screen, counter));
            screened.tools = request.tools.and_then(|it| it.through(screen, counter));
            screened.format = request.format.and_then(|it| it.through(screen));
            screened.facts = request.facts.map_or(Ok(None), |it| it.through(screen))?;
        }
        Ok(screened)
    }

    /// Returns the request as it may be seen.
    pub(crate) fn request<'s>(&'s self, request: &Request<'s>) -> Request<'s> {
        Request {
            log: self.log.as_ref().unwrap_or(request.log),
            input: self.input.as_ref().or(request.input),
            fragments: self.fragments.as_ref().or(request.fragments),
            tools: self.tools.as_ref().or(request.tools),
            format: self.format.as_ref().or(request.format),
            facts: self.facts.as_ref().or(request.facts),
            ..*request
        }
    }
}
