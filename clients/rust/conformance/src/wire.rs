//! The calls of `wire.json` as typed messages.

use std::error::Error;
use std::path::Path;

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use rummikub_client::v1;
use serde_json::Value;

/// The path of the contract, beside this client.
const CONTRACT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../proto");

/// The calls of the file.
pub struct Wire {
    pool: DescriptorPool,
    /// One value for each call.
    pub calls: Vec<Value>,
}

impl Wire {
    /// Reads the file.
    pub fn read(path: &Path) -> Result<Self, Box<dyn Error>> {
        let services = ["rummikub/v1/validation_service.proto", "rummikub/v1/violation.proto"];
        let pool = DescriptorPool::from_file_descriptor_set(protox::compile(services, [CONTRACT])?)?;
        let mut file: Value = serde_json::from_slice(&std::fs::read(path)?)?;
        if file["format"] != "rummikub-wire/1" {
            return Err(format!("the format {} is unknown", file["format"]).into());
        }
        match file["calls"].take() {
            Value::Array(calls) => Ok(Self { pool, calls }),
            _ => Err("the file has no calls".into()),
        }
    }

    /// Parses the request, or the response, of a call.
    pub fn parse<M: Message + Default>(&self, call: &Value, key: &str) -> Result<M, Box<dyn Error>> {
        let (service, method) = rpc(call).split_once('/').ok_or("an rpc is service/method")?;
        let service = self.pool.get_service_by_name(service).ok_or("the service is unknown")?;
        let method = service.methods().find(|known| known.name() == method).ok_or("the method is unknown")?;
        let descriptor = if key == "request" { method.input() } else { method.output() };
        from_json(descriptor, &call[key])
    }

    /// Parses the refusal of a call.
    pub fn refusal(&self, call: &Value) -> Result<v1::Refusal, Box<dyn Error>> {
        let descriptor = self.pool.get_message_by_name("rummikub.v1.Refusal").ok_or("no Refusal in the contract")?;
        from_json(descriptor, &call["error"]["refusal"])
    }

    /// Returns the turns to judge that have a response, with the responses.
    pub fn turns(&self) -> Result<Vec<(v1::ValidateTurnRequest, v1::ValidateTurnResponse)>, Box<dyn Error>> {
        let turns =
            self.calls.iter().filter(|call| rpc(call).ends_with("/ValidateTurn") && call.get("response").is_some());
        turns.map(|call| Ok((self.parse(call, "request")?, self.parse(call, "response")?))).collect()
    }
}

/// Returns the service and the RPC of a call.
pub fn rpc(call: &Value) -> &str {
    call["rpc"].as_str().unwrap_or_default()
}

fn from_json<M: Message + Default>(descriptor: MessageDescriptor, json: &Value) -> Result<M, Box<dyn Error>> {
    let message = DynamicMessage::deserialize(descriptor, json)?;
    Ok(M::decode(message.encode_to_vec().as_slice())?)
}
