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
