// How calls are made: deadline, token, request id, and errors as exceptions.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "rummikub/error.hpp"

namespace rummikub {

// Returns a random request id (a UUID).
std::string new_request_id();

struct CallOptions {
  // After how long the call fails with DEADLINE_EXCEEDED. Without it, the deadline of the service config holds.
  std::optional<std::chrono::milliseconds> timeout = {};
  // The context of the call, for example to cancel it from another thread (TryCancel); it serves one call.
  grpc::ClientContext* context = nullptr;
};

// The channels of a client, each with a connection of its own: one for all calls, and further ones for many streams.
class Channels {
 public:
  using Connect = std::function<std::shared_ptr<grpc::Channel>()>;

  explicit Channels(Connect connect);

  const std::shared_ptr<grpc::Channel>& first() const { return first_->channel; }

  // Returns a channel with room for a stream, a new one if need be. There is room for another one when it is released.
  std::shared_ptr<grpc::Channel> enter();

 private:
  // Most streams of a connection. A server accepts 100 calls on it; one more waits in the client, without an error.
  static constexpr int streams_each = 50;

  struct Entry {
    std::shared_ptr<grpc::Channel> channel;
    std::atomic<int> streams{0};
  };

  Connect connect_;
  std::shared_ptr<Entry> first_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Entry>> all_;
};

// A connection with a token, which may be empty.
class Connection {
 public:
  Connection(std::string target, std::shared_ptr<Channels> channels, std::string token);

  const std::string& target() const { return target_; }
  // The channel of calls that are no streams.
  const std::shared_ptr<grpc::Channel>& channel() const { return channels_->first(); }
  const std::shared_ptr<Channels>& channels() const { return channels_; }

  // Adds the token and the deadline to a call.
  void prepare(grpc::ClientContext& context, std::optional<std::chrono::milliseconds> timeout = {}) const;

  // Returns the error of a status, with what to do about it.
  Error error(const std::string& method, const grpc::Status& status) const;

 private:
  std::string target_;
  std::shared_ptr<Channels> channels_;
  std::string token_;
};

// A stream in both directions. One thread may write while another one reads. The destructor cancels what is left.
template <typename Request, typename Response>
class Stream {
 public:
  using Raw = grpc::ClientReaderWriter<Request, Response>;

  // `stub` has a channel with room for the stream; `start` opens the stream on it.
  template <typename Stub, typename Start>
  Stream(std::shared_ptr<const Connection> connection, std::string method, std::unique_ptr<Stub> stub, Start start)
      : connection_(std::move(connection)),
        method_(std::move(method)),
        context_(std::make_unique<grpc::ClientContext>()) {
    connection_->prepare(*context_);
    raw_ = start(*stub, context_.get());
    place_ = std::move(stub);
  }
  Stream(Stream&&) noexcept = default;
  Stream& operator=(Stream&&) = delete;
  ~Stream() {
    if (!raw_ || is_finished_) return;
    context_->TryCancel();
    raw_->Finish();
  }

  // Sends a request; returns false if the stream has ended: read() has the cause.
  bool write(const Request& request) { return raw_->Write(request); }
  // Tells the service that no request follows.
  void writes_done() { raw_->WritesDone(); }
  // Returns the next response, or nothing at the end. Throws Error.
  std::optional<Response> read() {
    Response response;
    if (is_finished_) return std::nullopt;
    if (raw_->Read(&response)) return response;
    is_finished_ = true;
    const auto status = raw_->Finish();
    if (!status.ok()) throw connection_->error(method_, status);
    return std::nullopt;
  }

 private:
  std::shared_ptr<const Connection> connection_;
  std::string method_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::shared_ptr<const void> place_;
  std::unique_ptr<Raw> raw_;
  bool is_finished_ = false;
};

template <typename Request, typename = void>
struct HasRequestId : std::false_type {};
template <typename Request>
struct HasRequestId<Request, std::void_t<decltype(std::declval<Request&>().set_request_id(std::string()))>>
    : std::true_type {};

// The calls of a service. A request with an empty request_id is sent with a new one, also in all retries of the channel.
template <typename Service>
class Calls {
 public:
  using Stub = typename Service::Stub;

  explicit Calls(std::shared_ptr<const Connection> connection)
      : connection_(std::move(connection)), stub_(Service::NewStub(connection_->channel())) {}

 protected:
  template <typename Request, typename Response>
  Response call(const char* method, grpc::Status (Stub::*rpc)(grpc::ClientContext*, const Request&, Response*),
                const Request& request, const CallOptions& options) const {
    if constexpr (HasRequestId<Request>::value) {
      if (request.request_id().empty()) {
        Request filled = request;
        filled.set_request_id(new_request_id());
        return call(method, rpc, filled, options);
      }
    }
    grpc::ClientContext own;
    grpc::ClientContext& context = options.context ? *options.context : own;
    connection_->prepare(context, options.timeout);
    Response response;
    const auto status = (stub_.get()->*rpc)(&context, request, &response);
    if (!status.ok()) throw connection_->error(method, status);
    return response;
  }

  template <typename Request, typename Response, typename Start>
  Stream<Request, Response> stream(const char* method, Start start) const {
    return Stream<Request, Response>(connection_, method, Service::NewStub(connection_->channels()->enter()), start);
  }

 private:
  std::shared_ptr<const Connection> connection_;
  std::shared_ptr<Stub> stub_;
};

}  // namespace rummikub
