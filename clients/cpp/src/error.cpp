#include "rummikub/error.hpp"

#include <utility>

#include "rummikub/client/status.pb.h"

namespace rummikub {

struct Error::Details {
  v1::Refusal refusal;
  std::vector<std::string> fields;
  std::chrono::milliseconds retry_delay{0};
};

namespace {


// Returns what a developer can do about a refusal; "" if the message says it.
std::string advice(v1::ErrorReason reason) {
  switch (reason) {
    case v1::AUTHORIZATION_MALFORMED:
      return "pass seated() the token as JoinGame or CreateGame returned it";
    case v1::GAME_NOT_FOUND:
      return "check the game's id; games expire";
    case v1::TOKEN_VOID:
      return "use the token that replaced it, or join again";
    case v1::NOT_A_PLAYER:
      return "call with a seat's token: client.seated(seat_token)";
    case v1::NOT_THE_HOST:
      return "call with the host token: client.seated(host_token)";
    case v1::STALE_STATE:
      return "read the game again with GetGame, and let the player decide again";
    case v1::HISTORY_UNAVAILABLE:
      return "start again without an etag; Client::watch does so by itself";
    case v1::DUPLICATE_REQUEST:
      return "use a new request id for a request with other content";
    case v1::INTERNAL_ERROR:
      return "report it with the x-request-id of the trailing metadata";
    default:
      return v1::ErrorReason_IsValid(reason)
                 ? ""
                 : "the service is newer than this client, which does not know this reason; update the client";
  }
}

std::string sentence(const std::string& method, const grpc::Status& status, const std::string& hint,
                     v1::ErrorReason reason) {
  const bool is_refusal = reason != v1::ERROR_REASON_UNSPECIFIED;
  const auto what_to_do = is_refusal ? advice(reason) : hint;
  return "rummikub: " + method + ": " + (is_refusal ? reason_name(reason) : code_name(status.error_code())) + ": " +
         status.error_message() + (what_to_do.empty() ? "" : "; " + what_to_do);
}

bool is_type(const google::protobuf::Any& detail, const std::string& name) {
  return detail.type_url() == "type.googleapis.com/" + name;
}

}  // namespace

Error::Error(std::string method, const grpc::Status& status, const std::string& hint)
    : Error(std::move(method), status, hint, [&status] {
        Details read;
        client::Status sent;
        sent.ParseFromString(status.error_details());  // of a proxy's answer, nothing
        for (const auto& detail : sent.details()) {
          if (is_type(detail, "rummikub.v1.Refusal")) {
            read.refusal.ParseFromString(detail.value());
          } else if (is_type(detail, "google.rpc.BadRequest")) {
            client::BadRequest request;
            request.ParseFromString(detail.value());
            for (const auto& violation : request.field_violations()) read.fields.push_back(violation.field());
          } else if (is_type(detail, "google.rpc.RetryInfo")) {
            client::RetryInfo retry;
            retry.ParseFromString(detail.value());
            read.retry_delay = std::chrono::milliseconds(retry.retry_delay().seconds() * 1000 +
                                                         retry.retry_delay().nanos() / 1'000'000);
          }
        }
        return read;
      }()) {}

Error::Error(std::string name, const grpc::Status& status, const std::string& hint, Details&& details)
    : std::runtime_error(sentence(name, status, hint, details.refusal.reason())),
      method(std::move(name)),
      code(status.error_code()),
      message(status.error_message()),
      reason(details.refusal.reason()),
      metadata(details.refusal.metadata().begin(), details.refusal.metadata().end()),
      violations(details.refusal.violations().begin(), details.refusal.violations().end()),
      fields(std::move(details.fields)),
      retry_delay(details.retry_delay) {}

std::string code_name(grpc::StatusCode code) {
  static const char* const names[] = {
      "OK",          "CANCELLED",     "UNKNOWN",           "INVALID_ARGUMENT",    "DEADLINE_EXCEEDED", "NOT_FOUND",
      "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE",
      "UNIMPLEMENTED", "INTERNAL",     "UNAVAILABLE",       "DATA_LOSS",           "UNAUTHENTICATED"};
  const auto number = static_cast<unsigned>(code);
  return number < std::size(names) ? names[number] : "code " + std::to_string(number);
}

std::string reason_name(v1::ErrorReason reason) {
  if (!v1::ErrorReason_IsValid(reason)) return std::to_string(static_cast<int>(reason));
  return std::string(v1::ErrorReason_Name(reason));
}

}  // namespace rummikub
