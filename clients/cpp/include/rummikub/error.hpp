// The error of a failed call.
#pragma once

#include <chrono>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <grpcpp/support/status.h>

#include "rummikub/v1/error_reason.pb.h"
#include "rummikub/v1/violation.pb.h"

namespace rummikub {

// A failed call: a refusal of the service, or a failure of the transport, which has no reason. what() is a sentence for a
// developer: the RPC, the reason or the code, the message, and what to do.
struct Error : std::runtime_error {
  // Reads the details of a status. `hint` is what to do if the status has no reason.
  Error(std::string method, const grpc::Status& status, const std::string& hint = "");

  std::string method;                             // the RPC, such as `PlayTurn`
  grpc::StatusCode code;                          // never OK
  std::string message;                            // the status message
  v1::ErrorReason reason;                         // may be a number that this client does not know
  std::map<std::string, std::string> metadata;    // the values that belong to the reason
  std::vector<v1::Violation> violations;          // of an illegal turn
  std::vector<std::string> fields;                // the fields at fault, such as `ruleset.melding.deal.players_min`
  std::chrono::milliseconds retry_delay{0};       // the delay that the service asks for

 private:
  struct Details;
  Error(std::string method, const grpc::Status& status, const std::string& hint, Details&& details);
};

// Returns the name of a reason, such as `NOT_YOUR_TURN`; the number of an unknown one.
std::string reason_name(v1::ErrorReason reason);

// Returns the name of a status code, such as `NOT_FOUND`.
std::string code_name(grpc::StatusCode code);

}  // namespace rummikub
