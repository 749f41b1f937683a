//! One session on a server of Spark Connect: plans go there, rows come back. A stream that breaks is taken up where it
//! broke; what runs there is ended when nobody waits for it any more.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use http::uri::PathAndQuery;
use prost::Message;
use tonic::client::Grpc;
use tonic::metadata::AsciiMetadataValue;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::wire::{
    ErrorInfo, ErrorStatus, Execute, INTERRUPT_ALL, Interrupt, Nothing, Plan, Reattach, Reattachable,
    Release, ReleaseSession, RequestOption, Response, User,
};
use super::{Access, uuid};

const CONNECT: Duration = Duration::from_secs(10);
/// For what is said at the end, whoever hears it.
const FAREWELL: Duration = Duration::from_secs(5);
/// Pauses before a stream is taken up again; after them a server is given up.
const PAUSES_MS: [u64; 6] = [100, 300, 1_000, 3_000, 5_000, 10_000];
/// The longest message that is read.
const LONGEST: usize = 256 << 20;
const PROGRESS_EVERY: Duration = Duration::from_secs(10);

/// Why a plan has no rows.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Nobody answers, or not to the end.
    #[error("{0}")]
    Unreachable(String),
    /// Not to this one.
    #[error("{0}")]
    Forbidden(String),
    /// The server knows nothing of the session or of the plan any more.
    #[error("{0}")]
    Forgotten(String),
    /// The plan failed; with Spark's class of the error and its SQLSTATE, where it says them.
    #[error("{message}")]
    Failed { message: String, class: String, state: String },
}

/// A session.
#[derive(Clone)]
pub struct Client {
    grpc: Grpc<Channel>,
    bearer: Option<AsciiMetadataValue>,
    user: User,
    session_id: String,
}

impl Client {
    /// Connects. The session begins with the first plan.
    ///
    /// # Errors
    /// Nobody there, or no TLS with this certificate.
    pub async fn connect(access: &Access) -> Result<Client, Refusal> {
        let unreachable = |error: tonic::transport::Error| Refusal::Unreachable(causes(&error));
        let mut endpoint = Endpoint::from_shared(access.address.url())
            .map_err(unreachable)?
            .connect_timeout(CONNECT)
            .tcp_nodelay(true)
            // A server that is gone is noticed after a minute.
            .tcp_keepalive(Some(Duration::from_secs(30)))
            .tcp_keepalive_interval(Some(Duration::from_secs(10)))
            .tcp_keepalive_retries(Some(3));
        if access.address.tls {
            let tls = match &access.ca_pem {
                Some(pem) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)),
                None => ClientTlsConfig::new().with_native_roots(),
            };
            endpoint = endpoint.tls_config(tls).map_err(unreachable)?;
        }
        let bearer = access.token.as_ref().map(|token| {
            let mut value = AsciiMetadataValue::try_from(format!("Bearer {token}")).map_err(|_| {
                Refusal::Forbidden("the token has characters that no header takes".to_string())
            })?;
            value.set_sensitive(true);
            Ok(value)
        });
        let channel = endpoint.connect().await.map_err(unreachable)?;
        let grpc = Grpc::new(channel).max_decoding_message_size(LONGEST);
        Ok(Client {
            grpc,
            bearer: bearer.transpose()?,
            user: User { id: access.user.clone() },
            session_id: uuid(),
        })
    }

    /// Does what a plan says. `each` is given the rows as they come, in Arrow's format, and may end it.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub async fn execute(
        &mut self,
        plan: Plan,
        mut each: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), Refusal> {
        let operation_id = uuid();
        let (mut last, mut pauses, mut told) = (None, PAUSES_MS.iter(), Instant::now());
        let mut answers = match self.begin(plan, &operation_id).await {
            Ok(answers) => answers,
            // Whether the plan arrived nobody knows.
            Err(status) => self.take_up(Some(status), &operation_id, None, &mut pauses).await?,
        };
        let mut said_something = true;
        loop {
            let broken = match answers.message().await {
                Ok(Some(response)) => {
                    (pauses, said_something) = (PAUSES_MS.iter(), true);
                    if let Some(batch) = &response.batch
                        && each(&batch.data).is_break()
                    {
                        self.interrupt().await;
                        break;
                    }
                    tell(&response, &mut told);
                    if response.complete.is_some() {
                        break;
                    }
                    if !response.response_id.is_empty() {
                        last = Some(response.response_id);
                    }
                    continue;
                }
                // A server ends a stream after some minutes, and waits to be asked for the rest.
                Ok(None) if said_something => None,
                Ok(None) => Some(Status::unavailable("it ends its answers before they are complete")),
                Err(status) => Some(status),
            };
            said_something = false;
            answers = self.take_up(broken, &operation_id, last.as_ref(), &mut pauses).await?;
        }
        let release = Release {
            session_id: self.session_id.clone(),
            user: Some(self.user.clone()),
            operation_id,
            client_type: client_type(),
            all: Some(Nothing {}),
        };
        // What is not released is forgotten there after some minutes.
        let _ = tokio::time::timeout(FAREWELL, self.call::<_, Nothing>("ReleaseExecute", release)).await;
        Ok(())
    }

    async fn begin(&mut self, plan: Plan, operation_id: &str) -> Result<Streaming<Response>, Status> {
        let execute = Execute {
            session_id: self.session_id.clone(),
            user: Some(self.user.clone()),
            plan: Some(plan),
            client_type: client_type(),
            options: vec![RequestOption { reattach: Some(Reattachable { is: true }) }],
            operation_id: operation_id.to_string(),
        };
        self.stream("ExecutePlan", execute).await
    }

    /// The rest of what a plan answers, after what came last.
    async fn take_up(
        &mut self,
        broken: Option<Status>,
        operation_id: &str,
        last: Option<&String>,
        pauses: &mut std::slice::Iter<'_, u64>,
    ) -> Result<Streaming<Response>, Refusal> {
        if let Some(status) = broken.as_ref().filter(|status| !is_passing(status)) {
            return Err(refusal(status));
        }
        let mut why = broken;
        loop {
            if let Some(status) = &why {
                let Some(pause) = pauses.next() else { return Err(refusal(status)) };
                tokio::time::sleep(Duration::from_millis(*pause)).await;
            }
            let reattach = Reattach {
                session_id: self.session_id.clone(),
                user: Some(self.user.clone()),
                operation_id: operation_id.to_string(),
                client_type: client_type(),
                last_response_id: last.cloned(),
            };
            match self.stream("ReattachExecute", reattach).await {
                Ok(answers) => return Ok(answers),
                Err(status) if is_passing(&status) => why = Some(status),
                // The plan never arrived, or what it answered is gone.
                Err(status) => return Err(forgotten(&status)),
            }
        }
    }

    /// Ends what runs in the session.
    pub async fn interrupt(&mut self) {
        let interrupt = Interrupt {
            session_id: self.session_id.clone(),
            user: Some(self.user.clone()),
            client_type: client_type(),
            kind: INTERRUPT_ALL,
        };
        let _ = tokio::time::timeout(FAREWELL, self.call::<_, Nothing>("Interrupt", interrupt)).await;
    }

    /// Ends the session, and with it its views.
    pub async fn end(&mut self) {
        let release = ReleaseSession {
            session_id: self.session_id.clone(),
            user: Some(self.user.clone()),
            client_type: client_type(),
        };
        let _ = tokio::time::timeout(FAREWELL, self.call::<_, Nothing>("ReleaseSession", release)).await;
    }

    async fn stream<Q>(&mut self, name: &str, message: Q) -> Result<Streaming<Response>, Status>
    where
        Q: Message + 'static,
    {
        let path = self.ready(name).await?;
        let codec = ProstCodec::<Q, Response>::default();
        let answer = self.grpc.server_streaming(self.request(message), path, codec).await?;
        Ok(answer.into_inner())
    }

    async fn call<Q, A>(&mut self, name: &str, message: Q) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let path = self.ready(name).await?;
        let codec = ProstCodec::<Q, A>::default();
        Ok(self.grpc.unary(self.request(message), path, codec).await?.into_inner())
    }

    async fn ready(&mut self, name: &str) -> Result<PathAndQuery, Status> {
        self.grpc.ready().await.map_err(|error| Status::unavailable(causes(&error)))?;
        format!("/spark.connect.SparkConnectService/{name}")
            .parse()
            .map_err(|_| Status::internal("no path of a method"))
    }

    fn request<Q>(&self, message: Q) -> Request<Q> {
        let mut request = Request::new(message);
        if let Some(bearer) = &self.bearer {
            request.metadata_mut().insert("authorization", bearer.clone());
        }
        request
    }
}

fn client_type() -> String {
    concat!("weir/", env!("CARGO_PKG_VERSION")).to_string()
}

/// How far a plan has come, now and then.
fn tell(response: &Response, told: &mut Instant) {
    let Some(progress) = &response.progress else { return };
    if told.elapsed() < PROGRESS_EVERY {
        return;
    }
    *told = Instant::now();
    let done: i64 = progress.stages.iter().map(|stage| stage.tasks_done).sum();
    let all: i64 = progress.stages.iter().map(|stage| stage.tasks).sum();
    say!("Spark: {done} of {all} tasks");
}

/// Whether the same may succeed in a moment. An error that Spark gives a class is its last word.
fn is_passing(status: &Status) -> bool {
    let passing =
        matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Aborted | Code::Cancelled);
    passing && info(status).is_none()
}

fn refusal(status: &Status) -> Refusal {
    let message = first_lines(status.message());
    let info = info(status);
    let class = info.as_ref().and_then(|info| info.metadata.get("errorClass")).cloned().unwrap_or_default();
    let state = info.as_ref().and_then(|info| info.metadata.get("sqlState")).cloned().unwrap_or_default();
    match status.code() {
        Code::Unauthenticated | Code::PermissionDenied => Refusal::Forbidden(message),
        _ if class.starts_with("INVALID_HANDLE") || status.message().contains("[INVALID_HANDLE.") => {
            Refusal::Forgotten(message)
        }
        Code::Unavailable | Code::Cancelled => Refusal::Unreachable(message),
        _ => Refusal::Failed { message, class, state },
    }
}

/// Why a plan cannot be taken up again, where it is not that nobody may.
fn forgotten(status: &Status) -> Refusal {
    match refusal(status) {
        Refusal::Failed { message, .. } => Refusal::Forgotten(message),
        other => other,
    }
}

fn info(status: &Status) -> Option<ErrorInfo> {
    let details = ErrorStatus::decode(status.details()).ok()?.details;
    let any = details.into_iter().find(|any| any.type_url.ends_with("google.rpc.ErrorInfo"))?;
    ErrorInfo::decode(any.value.as_slice()).ok()
}

/// What a person reads of a message: not the stack of the server's virtual machine.
fn first_lines(message: &str) -> String {
    let text = message.split("\n\nJVM stacktrace").next().unwrap_or_default().trim();
    let text = text.split("\n\tat ").next().unwrap_or_default();
    // Spark shows its plan behind the sentence.
    let text = text.split(";\n").next().unwrap_or_default();
    text.chars().take(2_000).collect()
}

fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let words = inner.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(code: Code, message: &str, info: Option<(&str, &str)>) -> Status {
        let Some((class, state)) = info else { return Status::new(code, message) };
        let info = ErrorInfo {
            reason: String::new(),
            metadata: [("errorClass", class), ("sqlState", state)].map(|(k, v)| (k.into(), v.into())).into(),
        };
        let any = super::super::wire::Any {
            type_url: "type.googleapis.com/google.rpc.ErrorInfo".into(),
            value: info.encode_to_vec(),
        };
        Status::with_details(code, message, ErrorStatus { details: vec![any] }.encode_to_vec().into())
    }

    #[test]
    fn only_an_error_without_a_class_may_pass() {
        assert!(is_passing(&with(Code::Unavailable, "connection reset", None)));
        assert!(!is_passing(&with(Code::Unavailable, "", Some(("SPARK_JOB_CANCELLED", "XXKDA")))));
        assert!(!is_passing(&with(Code::Internal, "no such table", None)));
        assert!(!is_passing(&with(Code::Unauthenticated, "who?", None)));
    }

    #[test]
    fn a_refusal_says_what_a_person_can_use() {
        let failed = refusal(&with(
            Code::Internal,
            "[PARSE_SYNTAX_ERROR] near 'FROM'\n\nJVM stacktrace:\norg.apache…",
            Some(("PARSE_SYNTAX_ERROR", "42601")),
        ));
        let Refusal::Failed { message, class, state } = failed else { panic!("{failed}") };
        assert_eq!(
            (message.as_str(), class.as_str(), state.as_str()),
            ("[PARSE_SYNTAX_ERROR] near 'FROM'", "PARSE_SYNTAX_ERROR", "42601")
        );
        let forgotten = with(Code::Internal, "", Some(("INVALID_HANDLE.SESSION_NOT_FOUND", "HY000")));
        assert!(matches!(refusal(&forgotten), Refusal::Forgotten(_)));
        assert!(matches!(refusal(&with(Code::PermissionDenied, "", None)), Refusal::Forbidden(_)));
    }
}
