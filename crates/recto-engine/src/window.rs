//! Reads as much of a stored log as is asked of it, page by page.
//!
//! It begins with the newest entries. When plan or compile ask for more, the log says what is missing, and that is read:
//! more of all strands where the gap is near, more of one strand where it is far, single entries and sums.

use crate::body;
use crate::error::Error;
use crate::store::{Back, Conversation, ConversationId, ROWS_MAX, Row, Store, Tenant};
use recto::log::{Counted, Known, Missing, Newest, Tally};
use recto::redact::{Screen, Secrets};
use recto::{Count, Log, Role, Seq, Tokens};
use std::sync::Arc;

/// How many rows the first page has at most; each further one has twice as many.
const FIRST_ROWS: usize = 2_048;
/// The first page is larger than what is asked for by this part, since reading stops behind the bound.
const MARGIN: u64 = 8;
/// A gap further below than this is read strand by strand.
const NEAR_ENTRIES: u64 = 4_096;

/// What was read of a stored log so far.
pub(crate) struct Window<'s, S> {
    store: &'s S,
    tenant: &'s Tenant,
    id: &'s ConversationId,
    counter: Arc<dyn Count>,
    screen: Arc<Screen>,
    /// What was told in it that is a secret.
    secrets: Secrets,
    known: Known,
    /// All strands were read down to here.
    frontier: Option<Seq>,
    rows: usize,
    tokens: Tokens,
}

impl<'s, S: Store> Window<'s, S> {
    /// Reads the newest entries of a log as it was when `head` was its newest one.
    pub(crate) async fn open(
        store: &'s S,
        tenant: &'s Tenant,
        conversation: &'s Conversation,
        head: Option<Seq>,
        counter: Arc<dyn Count>,
        (screen, secrets): (Screen, Secrets),
        tokens: Tokens,
    ) -> Result<Window<'s, S>, Error> {
        let id = &conversation.id;
        let tally = match head {
            _ if head == conversation.tally.head() => conversation.tally.clone(),
            Some(head) => store.tallies(tenant, id, vec![head]).await?.into_iter().next().unwrap_or_default(),
            None => Tally::default(),
        };
        let known = Known { tally, ..Known::default() };
        let tokens = Tokens(tokens.0.saturating_add(tokens.0 / MARGIN));
        let screen = Arc::new(screen);
        let (frontier, rows) = (None, FIRST_ROWS);
        let mut window = Window { store, tenant, id, counter, screen, secrets, known, frontier, rows, tokens };
        if window.known.tally.head().is_some() {
            window.read_all_strands().await?;
        }
        Ok(window)
    }

    /// Reads what a page will most likely ask for below what was read: the first request, and some places.
    pub(crate) async fn foresee(&mut self, places: Vec<Seq>) -> Result<(), Error> {
        let requests = self.known.tally.strands().iter().filter(|strand| strand.role == Role::User);
        let places = requests.map(|strand| strand.first).chain(places);
        let is_new = |place: &Seq| !self.known.entries.contains_key(place) && !self.known.absent.contains(place);
        let below: Vec<Seq> = places.filter(|place| Some(*place) < self.frontier && is_new(place)).collect();
        if below.is_empty() {
            return Ok(());
        }
        let before = below.iter().filter_map(|place| body::before(*place));
        self.read_tallies(below.iter().copied().chain(before).collect()).await?;
        self.read_entries(below).await
    }

    /// Returns the part of the log that was read so far, as it was when `head` was its newest entry.
    pub(crate) fn log(&self, head: Option<Seq>) -> Log {
        let log = Log::partial(self.counter.clone(), self.screen.clone(), self.known.clone());
        let log = log.knowing(self.secrets.clone());
        if log.head() == head { log } else { log.until(head) }
    }

    /// Reads what was missing.
    pub(crate) async fn fetch(&mut self, missing: &[Missing]) -> Result<(), Error> {
        let (mut entries, mut places, mut all) = (Vec::new(), Vec::new(), false);
        self.rows = (self.rows * 2).min(ROWS_MAX);
        self.tokens = Tokens(self.tokens.0.saturating_mul(2));
        for it in missing {
            match *it {
                Missing::Entry(seq) => entries.push(seq),
                Missing::Tally(seq) => places.push(seq),
                Missing::First { strand, from } => {
                    let first = self.store.first(self.tenant, self.id, strand, from).await?;
                    if let Some(seq) = first {
                        self.known.firsts.insert((strand, from), seq);
                        entries.push(seq);
                    }
                }
                Missing::Back { below, .. } if self.is_near(below) => all = true,
                Missing::Back { strand, below } => self.read_strand(strand, below).await?,
            }
        }
        if all {
            self.read_all_strands().await?;
        }
        self.read_entries(entries).await?;
        self.read_tallies(places).await
    }

    fn is_near(&self, below: Seq) -> bool {
        self.frontier.is_none_or(|frontier| frontier.0.saturating_sub(below.0) <= NEAR_ENTRIES)
    }

    async fn read_entries(&mut self, seqs: Vec<Seq>) -> Result<(), Error> {
        for some in seqs.chunks(ROWS_MAX) {
            let rows = self.store.rows(self.tenant, self.id, some.to_vec()).await?;
            for row in &rows {
                self.known.entries.insert(row.seq, body::read(row, &self.screen, &*self.counter)?);
            }
            let absent = some.iter().filter(|seq| !self.known.entries.contains_key(seq));
            self.known.absent.extend(absent.copied().collect::<Vec<_>>());
        }
        Ok(())
    }

    async fn read_tallies(&mut self, places: Vec<Seq>) -> Result<(), Error> {
        if !places.is_empty() {
            let tallies = self.store.tallies(self.tenant, self.id, places.clone()).await?;
            self.known.tallies.extend(places.into_iter().zip(tallies));
        }
        Ok(())
    }

    /// Reads one page more of all strands.
    async fn read_all_strands(&mut self) -> Result<(), Error> {
        let below = Some(self.frontier.unwrap_or_else(|| self.known.tally.head().map_or(Seq(0), Seq::next)));
        let back = Back { strands: Vec::new(), below, rows: self.rows, tokens: self.tokens };
        let rows = self.store.back(self.tenant, self.id, back).await?;
        let Some(oldest) = rows.last().map(|row| row.seq) else { return Ok(()) };
        let before = self.tally_before(oldest).await?;
        self.frontier = Some(oldest);
        let strands = self.known.tally.strands().len();
        self.known.strands.resize_with(strands, Newest::default);
        for strand in 0..strands {
            let own: Vec<&Row> = rows.iter().filter(|row| row.strand == strand).collect();
            self.extend(strand, &own, oldest, &before)?;
        }
        Ok(())
    }

    /// Reads one page more of one strand.
    async fn read_strand(&mut self, strand: usize, below: Seq) -> Result<(), Error> {
        let back = Back { strands: vec![strand], below: Some(below), rows: self.rows, tokens: self.tokens };
        let rows = self.store.back(self.tenant, self.id, back).await?;
        let Some(oldest) = rows.last().map(|row| row.seq) else { return Ok(()) };
        let before = self.tally_before(oldest).await?;
        self.known.strands.resize_with(self.known.tally.strands().len(), Newest::default);
        self.extend(strand, &rows.iter().collect::<Vec<_>>(), oldest, &before)
    }

    async fn tally_before(&self, seq: Seq) -> Result<Tally, Error> {
        let Some(place) = body::before(seq) else { return Ok(Tally::default()) };
        Ok(self.store.tallies(self.tenant, self.id, vec![place]).await?.into_iter().next().unwrap_or_default())
    }

    /// Puts rows, newest first, under what is known of a strand, which is then known down to a place.
    fn extend(&mut self, strand: usize, rows: &[&Row], down_to: Seq, before: &Tally) -> Result<(), Error> {
        let newest = &mut self.known.strands[strand];
        let lowest = newest.entries.first().map(|entry| entry.seq);
        if lowest.is_some_and(|lowest| lowest <= down_to) {
            return Ok(());
        }
        let fresh = rows.iter().rev().filter(|row| lowest.is_none_or(|lowest| row.seq < lowest));
        let read = |row: &&Row| body::read(row, &self.screen, &*self.counter);
        let mut entries: Vec<Arc<Counted>> = fresh.map(read).collect::<Result<_, _>>()?;
        entries.append(&mut newest.entries);
        *newest = Newest { below: before.strands().get(strand).cloned(), entries };
        Ok(())
    }
}
