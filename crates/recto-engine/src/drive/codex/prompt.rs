//! What Codex is told: a text, and files that only its user may read and that are gone when the turn is.

use crate::error::{Error, Kind};
use recto::entry::{Media, Part};
use recto::page::Message;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

/// The most pictures of one turn; those beyond are named.
const IMAGES_MAX: usize = 50;

/// What is said in one turn.
#[derive(Debug, Default)]
pub(super) struct Prompt {
    pub(super) text: String,
    pub(super) images: Vec<Image>,
}

/// A picture.
#[derive(Debug)]
pub(super) struct Image {
    /// How the name of its file ends.
    pub(super) kind: &'static str,
    pub(super) bytes: Vec<u8>,
}

impl Prompt {
    /// Returns messages as one: words as they are, pictures by number, everything else by name.
    pub(super) fn of(messages: &[Message]) -> Prompt {
        let mut prompt = Prompt::default();
        for message in messages {
            let pieces: Vec<String> = message.parts.iter().filter_map(|part| prompt.piece(part)).collect();
            if pieces.is_empty() {
                continue;
            }
            if !prompt.text.is_empty() {
                prompt.text.push_str("\n\n");
            }
            prompt.text.push_str(&pieces.join("\n"));
        }
        prompt
    }

    fn piece(&mut self, part: &Part) -> Option<String> {
        let named = |kind: &str, name: &str| Some(format!("[{kind} {name}]"));
        match part {
            Part::Text { text } => part.is_content().then(|| text.to_string()),
            Part::Image(media) => Some(self.image(media)),
            Part::Audio(media) => named("audio", media.name.as_deref().unwrap_or("without a name")),
            Part::Document(media) => named("file", media.name.as_deref().unwrap_or("without a name")),
            Part::File { id } => named("file", id),
            _ => None,
        }
    }

    fn image(&mut self, media: &Media) -> String {
        match read(&media.url).filter(|_| self.images.len() < IMAGES_MAX) {
            Some(image) => {
                self.images.push(image);
                format!("[Image #{}]", self.images.len())
            }
            None if media.url.starts_with("data:") => "[a picture that can't be shown]".into(),
            None => format!("[picture {}]", media.url),
        }
    }
}

fn read(url: &str) -> Option<Image> {
    let (kind, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    let kind = match kind {
        "image/png" => "png",
        "image/jpeg" | "image/jpg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        _ => return None,
    };
    Some(Image { kind, bytes: decoded(data)? })
}

/// The bytes of base64; `None` if it is none.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for group in digits.chunks(4) {
        let mut value = 0;
        for at in 0..4 {
            value = value << 6 | group.get(at).map_or(Some(0), |byte| digit(*byte).map(u32::from))?;
        }
        bytes.extend_from_slice(&value.to_be_bytes()[1..group.len().max(1)]);
    }
    Some(bytes)
}

/// A folder for the files of one turn, made when the first is put there; dropping it removes it.
#[derive(Debug)]
pub(super) struct Private {
    folder: PathBuf,
    is_made: bool,
}

impl Private {
    /// Returns a folder by a name that nobody else uses.
    pub(super) fn named(name: &str) -> Private {
        let plain: String = name.chars().filter(|it| it.is_ascii_alphanumeric() || *it == '-').collect();
        let folder = std::env::temp_dir().join(format!("recto-codex-{}-{plain}", std::process::id()));
        Private { folder, is_made: false }
    }

    /// Writes a file.
    pub(super) fn put(&mut self, name: &str, bytes: &[u8]) -> Result<PathBuf, Error> {
        let path = self.folder.join(name);
        self.write(&path, bytes).map_err(|error| {
            let what = format!("{} can't be written: {error}", path.display());
            Error::from(Kind::Io { what, why: "what Codex is told goes through it".into() })
        })?;
        Ok(path)
    }

    fn write(&mut self, path: &PathBuf, bytes: &[u8]) -> io::Result<()> {
        if !self.is_made {
            // It fails if somebody else has made it, who could read along.
            DirBuilder::new().mode(0o700).create(&self.folder)?;
            self.is_made = true;
        }
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        if self.is_made {
            // What can't be removed is still out of reach for others.
            drop(std::fs::remove_dir_all(&self.folder));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_read_from_their_addresses() {
        let bytes = |url| read(url).map(|image| (image.kind, image.bytes));
        assert_eq!(bytes("data:image/png;base64,AAEC/w=="), Some(("png", vec![0, 1, 2, 255])));
        assert_eq!(bytes("data:image/jpeg;base64,SGk"), Some(("jpg", b"Hi".to_vec())));
        for none in ["data:image/png;base64,A*==", "https://example.org/a.png", "data:text/plain;base64,AAEC"] {
            assert_eq!(bytes(none), None, "{none}");
        }
    }

    #[test]
    fn files_are_private_and_go_with_their_folder() {
        use std::os::unix::fs::PermissionsExt;
        let mut private = Private::named("prompt-test/../x");
        let path = private.put("a.md", b"secret").unwrap();
        let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let folder = path.parent().unwrap().to_path_buf();
        assert_eq!((mode(&path), mode(&folder)), (0o600, 0o700));
        assert_eq!(folder.parent(), Some(&*std::env::temp_dir()));
        assert!(Private::named("prompt-test/../x").put("b.md", b"").is_err(), "a folder is nobody else's");
        drop(private);
        assert!(!folder.exists());
    }
}
