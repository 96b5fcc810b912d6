use std::fmt;
use std::sync::Arc;

/// How long a name of the host's own may be.
pub(super) const NAME_BYTES_MAX: usize = 40;

/// What a secret or personal datum is. Where two overlap, the one that stands first here names both.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A private key in PEM or PGP armour.
    PrivateKey,
    /// A key of Anthropic.
    AnthropicKey,
    /// A key of OpenAI, or of a service that writes keys like it.
    OpenaiKey,
    /// An API key, access token or client secret of Google.
    GoogleKey,
    /// A token of GitHub.
    GithubToken,
    /// A token of GitLab.
    GitlabToken,
    /// A token of Slack.
    SlackToken,
    /// A key or webhook secret of Stripe.
    StripeKey,
    /// The id of an access key of AWS.
    AwsKeyId,
    /// The secret of an access key of AWS.
    AwsSecretKey,
    /// A token of Hugging Face.
    HuggingFaceToken,
    /// A token of npm.
    NpmToken,
    /// A token of PyPI.
    PypiToken,
    /// A key of SendGrid.
    SendgridKey,
    /// An API key of Twilio.
    TwilioKey,
    /// A key in a connection string of Azure.
    AzureKey,
    /// What a pattern of the host's own finds.
    Own(Arc<str>),
    /// A signed or encrypted JSON web token.
    Jwt,
    /// What stands after `Bearer` or `Basic`.
    Authorization,
    /// The password in an address.
    UrlPassword,
    /// What is assigned to a name such as `password`, `token` or `api_key`.
    Assigned,
    /// An e-mail address.
    Email,
    /// An account number (IBAN) with a right checksum.
    Iban,
    /// A card number with a right checksum.
    Card,
    /// A phone number.
    Phone,
}

impl Kind {
    /// All that are built in.
    pub const ALL: [Kind; 24] = [
        Kind::PrivateKey,
        Kind::AnthropicKey,
        Kind::OpenaiKey,
        Kind::GoogleKey,
        Kind::GithubToken,
        Kind::GitlabToken,
        Kind::SlackToken,
        Kind::StripeKey,
        Kind::AwsKeyId,
        Kind::AwsSecretKey,
        Kind::HuggingFaceToken,
        Kind::NpmToken,
        Kind::PypiToken,
        Kind::SendgridKey,
        Kind::TwilioKey,
        Kind::AzureKey,
        Kind::Jwt,
        Kind::Authorization,
        Kind::UrlPassword,
        Kind::Assigned,
        Kind::Email,
        Kind::Iban,
        Kind::Card,
        Kind::Phone,
    ];

    /// Returns its name, as in settings and placeholders.
    pub fn name(&self) -> &str {
        match self {
            Kind::PrivateKey => "private_key",
            Kind::AnthropicKey => "anthropic_key",
            Kind::OpenaiKey => "openai_key",
            Kind::GoogleKey => "google_key",
            Kind::GithubToken => "github_token",
            Kind::GitlabToken => "gitlab_token",
            Kind::SlackToken => "slack_token",
            Kind::StripeKey => "stripe_key",
            Kind::AwsKeyId => "aws_key_id",
            Kind::AwsSecretKey => "aws_secret_key",
            Kind::HuggingFaceToken => "hugging_face_token",
            Kind::NpmToken => "npm_token",
            Kind::PypiToken => "pypi_token",
            Kind::SendgridKey => "sendgrid_key",
            Kind::TwilioKey => "twilio_key",
            Kind::AzureKey => "azure_key",
            Kind::Own(name) => name,
            Kind::Jwt => "jwt",
            Kind::Authorization => "authorization",
            Kind::UrlPassword => "url_password",
            Kind::Assigned => "assigned",
            Kind::Email => "email",
            Kind::Iban => "iban",
            Kind::Card => "card",
            Kind::Phone => "phone",
        }
    }

    /// Returns whether it is about a person; everything else is a secret.
    pub fn is_personal(&self) -> bool {
        matches!(self, Kind::Email | Kind::Iban | Kind::Card | Kind::Phone)
    }
}

/// Those that are built in, where they can be borrowed.
static BUILT_IN: [Kind; Kind::ALL.len()] = Kind::ALL;

/// A set of kinds that are built in: a bit for each, in their order.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Kinds(u32);

impl Kinds {
    pub(super) const ALL: Kinds = Kinds((1 << Kind::ALL.len()) - 1);
    /// They stand last among all.
    pub(super) const PERSONAL: Kinds = Kinds(0b1111 << (Kind::ALL.len() - 4));
    pub(super) const SECRETS: Kinds = Kinds::ALL.without(Kinds::PERSONAL);

    /// Returns the kinds of a name: one of them, or a group.
    pub(super) fn named(name: &str) -> Kinds {
        match name {
            "all" => Kinds::ALL,
            "secrets" => Kinds::SECRETS,
            "personal" => Kinds::PERSONAL,
            _ => BUILT_IN.iter().position(|kind| kind.name() == name).map_or(Kinds(0), |at| Kinds(1 << at)),
        }
    }

    pub(super) const fn with(self, others: Kinds) -> Kinds {
        Kinds(self.0 | others.0)
    }

    pub(super) const fn without(self, others: Kinds) -> Kinds {
        Kinds(self.0 & !others.0)
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Returns whether any of these is among the others.
    pub(super) const fn meets(self, others: Kinds) -> bool {
        self.0 & others.0 != 0
    }

    pub(super) fn contains(self, kind: &Kind) -> bool {
        BUILT_IN.iter().position(|it| it == kind).is_some_and(|at| self.0 & (1 << at) != 0)
    }

    pub(super) fn iter<'k>(self) -> impl Iterator<Item = &'k Kind> {
        BUILT_IN.iter().enumerate().filter(move |(at, _)| self.0 & (1 << at) != 0).map(|(_, kind)| kind)
    }
}

impl fmt::Debug for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_those_of_their_kinds() {
        let of = |is_in: fn(&Kind) -> bool| Kind::ALL.into_iter().filter(is_in).collect::<Vec<Kind>>();
        let listed = |kinds: Kinds| kinds.iter().cloned().collect::<Vec<Kind>>();
        assert_eq!(listed(Kinds::ALL), Kind::ALL);
        assert_eq!(listed(Kinds::PERSONAL), of(Kind::is_personal));
        assert_eq!(listed(Kinds::SECRETS), of(|kind| !kind.is_personal()));
        assert!(Kind::ALL.is_sorted());
        for kind in Kind::ALL {
            let one = Kinds::named(kind.name());
            assert_eq!((one.len(), one.contains(&kind)), (1, true));
            assert!(!Kinds::ALL.without(one).contains(&kind));
        }
        assert!(Kinds::named("jwts").is_empty());
        assert!(!Kinds::ALL.contains(&Kind::Own("jwt".into())));
    }
}
