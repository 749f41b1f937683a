//! The messages of Spark Connect that a question needs (spark/connect/base.proto, relations.proto, commands.proto of Spark
//! 4). A field that is not here is skipped; a field of a oneof is an optional field like any other.

use std::collections::HashMap;

use prost::Message;

/// Who asks.
#[derive(Clone, PartialEq, Message)]
pub struct User {
    #[prost(string, tag = "1")]
    pub id: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Execute {
    #[prost(string, tag = "1")]
    pub session_id: String,
    #[prost(message, optional, tag = "2")]
    pub user: Option<User>,
    #[prost(message, optional, tag = "3")]
    pub plan: Option<Plan>,
    #[prost(string, tag = "4")]
    pub client_type: String,
    #[prost(message, repeated, tag = "5")]
    pub options: Vec<RequestOption>,
    #[prost(string, tag = "6")]
    pub operation_id: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct RequestOption {
    #[prost(message, optional, tag = "1")]
    pub reattach: Option<Reattachable>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Reattachable {
    #[prost(bool, tag = "1")]
    pub is: bool,
}

/// What is to be done: rows of a relation, or a command.
#[derive(Clone, PartialEq, Message)]
pub struct Plan {
    #[prost(message, optional, tag = "1")]
    pub root: Option<Relation>,
    #[prost(message, optional, tag = "2")]
    pub command: Option<Command>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Relation {
    #[prost(message, optional, tag = "2")]
    pub read: Option<Read>,
    #[prost(message, optional, boxed, tag = "8")]
    pub limit: Option<Box<Limit>>,
    #[prost(message, optional, tag = "10")]
    pub sql: Option<Sql>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Read {
    #[prost(message, optional, tag = "2")]
    pub source: Option<DataSource>,
}

/// Files of one format.
#[derive(Clone, PartialEq, Message)]
pub struct DataSource {
    #[prost(string, tag = "1")]
    pub format: String,
    #[prost(string, tag = "2")]
    pub schema: String,
    #[prost(map = "string, string", tag = "3")]
    pub options: HashMap<String, String>,
    #[prost(string, repeated, tag = "4")]
    pub paths: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Limit {
    #[prost(message, optional, boxed, tag = "1")]
    pub input: Option<Box<Relation>>,
    #[prost(int32, tag = "2")]
    pub rows: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Sql {
    #[prost(string, tag = "1")]
    pub query: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Command {
    #[prost(message, optional, tag = "3")]
    pub view: Option<View>,
}

/// A name for a relation, in the session alone.
#[derive(Clone, PartialEq, Message)]
pub struct View {
    #[prost(message, optional, tag = "1")]
    pub input: Option<Relation>,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(bool, tag = "3")]
    pub is_global: bool,
    #[prost(bool, tag = "4")]
    pub replace: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct Response {
    #[prost(message, optional, tag = "2")]
    pub batch: Option<ArrowBatch>,
    #[prost(string, tag = "13")]
    pub response_id: String,
    #[prost(message, optional, tag = "14")]
    pub complete: Option<Nothing>,
    #[prost(message, optional, tag = "18")]
    pub progress: Option<Progress>,
}

/// Rows, as a stream of Arrow's inter-process format.
#[derive(Clone, PartialEq, Message)]
pub struct ArrowBatch {
    #[prost(bytes = "vec", tag = "2")]
    pub data: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Nothing {}

#[derive(Clone, PartialEq, Message)]
pub struct Progress {
    #[prost(message, repeated, tag = "1")]
    pub stages: Vec<StageInfo>,
}

#[derive(Clone, PartialEq, Message)]
pub struct StageInfo {
    #[prost(int64, tag = "2")]
    pub tasks: i64,
    #[prost(int64, tag = "3")]
    pub tasks_done: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Reattach {
    #[prost(string, tag = "1")]
    pub session_id: String,
    #[prost(message, optional, tag = "2")]
    pub user: Option<User>,
    #[prost(string, tag = "3")]
    pub operation_id: String,
    #[prost(string, tag = "4")]
    pub client_type: String,
    #[prost(string, optional, tag = "5")]
    pub last_response_id: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Release {
    #[prost(string, tag = "1")]
    pub session_id: String,
    #[prost(message, optional, tag = "2")]
    pub user: Option<User>,
    #[prost(string, tag = "3")]
    pub operation_id: String,
    #[prost(string, tag = "4")]
    pub client_type: String,
    #[prost(message, optional, tag = "5")]
    pub all: Option<Nothing>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Interrupt {
    #[prost(string, tag = "1")]
    pub session_id: String,
    #[prost(message, optional, tag = "2")]
    pub user: Option<User>,
    #[prost(string, tag = "3")]
    pub client_type: String,
    #[prost(int32, tag = "4")]
    pub kind: i32,
}

/// `INTERRUPT_TYPE_ALL`: what runs in the session.
pub const INTERRUPT_ALL: i32 = 1;

#[derive(Clone, PartialEq, Message)]
pub struct ReleaseSession {
    #[prost(string, tag = "1")]
    pub session_id: String,
    #[prost(message, optional, tag = "2")]
    pub user: Option<User>,
    #[prost(string, tag = "3")]
    pub client_type: String,
}

/// google.rpc.Status, which stands in the details of an error.
#[derive(Clone, PartialEq, Message)]
pub struct ErrorStatus {
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<Any>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Any {
    #[prost(string, tag = "1")]
    pub type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

/// google.rpc.ErrorInfo: a class of the error, and its figures.
#[derive(Clone, PartialEq, Message)]
pub struct ErrorInfo {
    #[prost(string, tag = "1")]
    pub reason: String,
    #[prost(map = "string, string", tag = "3")]
    pub metadata: HashMap<String, String>,
}
