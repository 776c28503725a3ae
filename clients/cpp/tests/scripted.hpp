// A server on loopback whose answers are scripts.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "rummikub/client/status.pb.h"
#include "rummikub/rummikub.hpp"

using namespace std::chrono_literals;
namespace v1 = rummikub::v1;

using Updates = grpc::ServerWriter<v1::WatchGameResponse>;
using WatchStep = std::function<grpc::Status(grpc::ServerContext&, Updates&)>;

// Answers the n-th call by the n-th step; the last one repeats.
class ScriptedServer final : public v1::GameService::Service {
 public:
  std::vector<WatchStep> watches;
  std::vector<std::function<grpc::Status()>> joins;

  // Listens on the port, by default on a free one.
  explicit ScriptedServer(int port = 0) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:" + std::to_string(port), grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~ScriptedServer() override { server_->Shutdown(std::chrono::system_clock::now()); }

  int port() const { return port_; }
  std::string target() const { return "127.0.0.1:" + std::to_string(port_); }

  std::vector<v1::WatchGameRequest> watched() const { return locked(watched_); }
  std::vector<v1::JoinGameRequest> joined() const { return locked(joined_); }
  std::vector<std::string> tokens() const { return locked(tokens_); }

  grpc::Status WatchGame(grpc::ServerContext* context, const v1::WatchGameRequest* request, Updates* updates) override {
    return step(watches, watched_, *request)(*context, *updates);
  }

  grpc::Status JoinGame(grpc::ServerContext* context, const v1::JoinGameRequest* request, v1::JoinGameResponse*) override {
    const auto sent = context->client_metadata().find("authorization");
    if (sent != context->client_metadata().end()) {
      const std::lock_guard lock(mutex_);
      tokens_.emplace_back(sent->second.begin(), sent->second.end());
    }
    return step(joins, joined_, *request)();
  }

 private:
  template <typename Step, typename Request>
  Step step(const std::vector<Step>& steps, std::vector<Request>& requests, const Request& request) {
    const std::lock_guard lock(mutex_);
    requests.push_back(request);
    return steps.at(std::min(requests.size(), steps.size()) - 1);
  }

  template <typename Value>
  Value locked(const Value& value) const {
    const std::lock_guard lock(mutex_);
    return value;
  }

  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  mutable std::mutex mutex_;
  std::vector<v1::WatchGameRequest> watched_;
  std::vector<v1::JoinGameRequest> joined_;
  std::vector<std::string> tokens_;
};

// Returns the status of a refusal, with a delay before a retry.
inline grpc::Status refused(grpc::StatusCode code, v1::ErrorReason reason, std::chrono::seconds retry_delay = 0s) {
  v1::Refusal refusal;
  refusal.set_reason(reason);
  (*refusal.mutable_metadata())["revision"] = "7";
  refusal.add_violations()->set_subject("play.table[0]");
  rummikub::client::Status status;
  status.add_details()->PackFrom(refusal);
  rummikub::client::BadRequest fields;
  fields.add_field_violations()->set_field("ruleset.melding.deal.players_min");
  auto* detail = status.add_details();
  detail->set_type_url("type.googleapis.com/google.rpc.BadRequest");
  detail->set_value(fields.SerializeAsString());
  if (retry_delay > 0s) {
    rummikub::client::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(retry_delay.count());
    detail = status.add_details();
    detail->set_type_url("type.googleapis.com/google.rpc.RetryInfo");
    detail->set_value(retry.SerializeAsString());
  }
  return {code, "refused", status.SerializeAsString()};
}

inline std::string etag(unsigned revision) { return "etag " + std::to_string(revision); }

inline v1::WatchGameResponse snapshot(unsigned revision) {
  v1::WatchGameResponse update;
  update.mutable_snapshot()->set_revision(revision);
  update.mutable_snapshot()->set_etag(etag(revision));
  return update;
}

inline v1::WatchGameResponse game(unsigned revision) {
  v1::WatchGameResponse update;
  update.mutable_game()->set_revision(revision);
  update.mutable_game()->set_etag(etag(revision));
  return update;
}

inline v1::WatchGameResponse change(unsigned revision) {
  v1::WatchGameResponse update;
  update.mutable_change()->set_revision(revision);
  update.mutable_change()->set_etag(etag(revision));
  return update;
}

inline v1::WatchGameResponse closing() {
  v1::WatchGameResponse update;
  update.mutable_closing()->mutable_retry_delay()->set_nanos(300'000'000);
  return update;
}

inline v1::WatchGameResponse heartbeat() {
  v1::WatchGameResponse update;
  update.mutable_heartbeat();
  return update;
}

// Returns an update of a newer server: field 1000, which this client does not know.
inline v1::WatchGameResponse unknown_update() {
  v1::WatchGameResponse update;
  update.ParseFromString("\xc2\x3e\x01x");
  return update;
}
