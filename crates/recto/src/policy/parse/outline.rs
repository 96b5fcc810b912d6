//! Where the keys and values of a document stand, in TOML or JSON; of JSON also if it breaks off.

use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The values of a document, each after the one that holds it.
#[derive(Debug, Default)]
pub(super) struct Outline {
    nodes: Vec<Node>,
}

/// A value, and the key it stands under.
#[derive(Debug)]
pub(super) struct Node {
    parent: Option<usize>,
    name: Option<(String, Range<usize>)>,
    value: Range<usize>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Object,
    List,
    Scalar,
}

/// Where a container ends that is never closed.
const OPEN: usize = usize::MAX;

impl Outline {
    /// Returns the outline of a TOML document; of one that breaks TOML's rules there is none.
    pub(super) fn of_toml(text: &str) -> Option<Outline> {
        let table = DeTable::parse(text).ok()?;
        let mut outline = Outline::default();
        outline.nodes.push(Node { parent: None, name: None, value: table.span(), kind: Kind::Object });
        outline.add_table(0, table.get_ref());
        Some(outline)
    }

    fn add_table(&mut self, parent: usize, table: &DeTable<'_>) {
        let mut pairs: Vec<_> = table.iter().collect();
        pairs.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in pairs {
            self.add_toml(parent, Some((key.get_ref().to_string(), key.span())), value);
        }
    }

    fn add_toml(&mut self, parent: usize, name: Option<(String, Range<usize>)>, value: &Spanned<DeValue<'_>>) {
        let kind = match value.get_ref() {
            DeValue::Table(_) => Kind::Object,
            DeValue::Array(_) => Kind::List,
            _ => Kind::Scalar,
        };
        let at = self.nodes.len();
        self.nodes.push(Node { parent: Some(parent), name, value: value.span(), kind });
        match value.get_ref() {
            DeValue::Table(table) => self.add_table(at, table),
            DeValue::Array(list) => list.iter().for_each(|value| self.add_toml(at, None, value)),
            _ => {}
        }
    }

    /// Returns the outline of a JSON document, as far as it looks like one.
    pub(super) fn of_json(text: &str) -> Outline {
        let bytes = text.as_bytes();
        let (mut nodes, mut open, mut named, mut at) = (Vec::<Node>::new(), Vec::<usize>::new(), false, 0);
        while at < bytes.len() {
            let end = token_end(bytes, at);
            let parent = open.last().copied();
            let kind = match bytes[at] {
                b'{' => Kind::Object,
                b'[' => Kind::List,
                _ => Kind::Scalar,
            };
            match bytes[at] {
                b' ' | b'\t' | b'\n' | b'\r' | b':' | b',' => {}
                b'}' | b']' => {
                    named = false;
                    open.pop().into_iter().for_each(|node| nodes[node].value.end = end);
                }
                b'"' if !named && parent.is_some_and(|parent| nodes[parent].kind == Kind::Object) => {
                    let name = text[at..end].trim_matches('"').to_string();
                    nodes.push(Node { parent, name: Some((name, at..end)), value: OPEN..OPEN, kind });
                    named = true;
                }
                _ => {
                    if !std::mem::take(&mut named) {
                        nodes.push(Node { parent, name: None, value: OPEN..OPEN, kind });
                    }
                    let node = nodes.len() - 1;
                    (nodes[node].value, nodes[node].kind) = (at..end, kind);
                    if kind != Kind::Scalar {
                        nodes[node].value.end = OPEN;
                        open.push(node);
                    }
                }
            }
            at = end;
        }
        Outline { nodes }
    }

    /// Returns what stands under these keys.
    pub(super) fn get(&self, path: &[&str]) -> Option<usize> {
        path.iter().try_fold(0, |node, key| self.children(node).find(|child| self.name(*child) == Some(key)))
    }

    /// Returns what a node holds.
    pub(super) fn children(&self, node: usize) -> impl Iterator<Item = usize> {
        self.nodes.iter().enumerate().filter(move |(_, it)| it.parent == Some(node)).map(|(at, _)| at)
    }

    /// Returns the key under which a node stands.
    pub(super) fn name(&self, node: usize) -> Option<&str> {
        self.nodes[node].name.as_ref().map(|(name, _)| &**name)
    }

    /// Returns the first value within a node whose key is one of these words.
    pub(super) fn mentioned(&self, node: usize, words: &str) -> Option<usize> {
        let is_word = |name: &str| words.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
        let is_within = |at: usize| std::iter::successors(Some(at), |at| self.nodes[*at].parent).any(|at| at == node);
        (node + 1..self.nodes.len()).find(|at| is_within(*at) && self.name(*at).is_some_and(is_word))
    }

    /// Returns the text of a value.
    pub(super) fn text<'t>(&self, node: usize, text: &'t str) -> &'t str {
        text.get(self.nodes[node].value.clone()).unwrap_or_default()
    }

    /// Returns where a value stands; of one that holds others, its key.
    pub(super) fn place(&self, node: usize) -> usize {
        match &self.nodes[node] {
            Node { kind: Kind::Object | Kind::List, name: Some((_, at)), .. } => at.start,
            node => node.value.start,
        }
    }

    /// Returns where the key or value begins that was read last when so many bytes had been read.
    pub(super) fn last_read(&self, bytes: usize) -> Option<usize> {
        let names = self.nodes.iter().filter_map(|node| node.name.as_ref().map(|(_, at)| at));
        let read = names.chain(self.nodes.iter().map(|node| &node.value)).filter(|at| at.end <= bytes);
        read.max_by_key(|at| at.end).map(|at| at.start)
    }

    /// Returns where the list or object begins that was entered, was about to be, or was left, after so many bytes.
    pub(super) fn container(&self, bytes: usize, text: &str) -> Option<usize> {
        let rest = text.get(bytes..)?;
        let next = bytes + (rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r', ':', ',']).len());
        let all = || self.nodes.iter().filter(|node| node.kind != Kind::Scalar).map(|node| &node.value);
        let entered = || all().filter(|at| at.start < bytes && bytes < at.end).max_by_key(|at| at.start);
        let found = all().find(|at| at.end == bytes).or_else(|| all().find(|at| at.start == next)).or_else(entered);
        found.map(|at| at.start)
    }
}

/// One past the string, word or sign that begins here.
fn token_end(bytes: &[u8], start: usize) -> usize {
    const SIGNS: &[u8] = b" \t\n\r:,{}[]\"";
    let rest = &bytes[start + 1..];
    let length = match bytes[start] {
        b'"' => {
            let mut is_escaped = false;
            let end = rest.iter().position(|byte| {
                let is_end = *byte == b'"' && !is_escaped;
                is_escaped = *byte == b'\\' && !is_escaped;
                is_end
            });
            end.map_or(rest.len(), |end| end + 1)
        }
        byte if SIGNS.contains(&byte) => 0,
        _ => rest.iter().position(|byte| SIGNS.contains(byte)).unwrap_or(rest.len()),
    };
    start + 1 + length
}
