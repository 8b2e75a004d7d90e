#ifndef PLANEWISE_CLIENTS_CPP_FAKE_SERVER_H_
#define PLANEWISE_CLIENTS_CPP_FAKE_SERVER_H_
// A daemon in the test's own process, on a port of the loopback that the system
// chooses: control calls with made-up answers, one session (fake_session.h), and
// replies that get lost where the test wants them to.
//
// Not here: weights, numerics, errors of a real daemon (tests/e2e/).

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "clients/cpp/fake_session.h"
#include "core/base/mutex.h"
#include "grpcpp/server.h"
#include "planewise/v1/models.grpc.pb.h"
#include "planewise/v1/server.grpc.pb.h"
#include "planewise/v1/session.grpc.pb.h"

namespace planewise {

// Thread-safe.
class FakeServer final : public v1::Models::Service,
                         public v1::Server::Service,
                         public v1::Sessions::Service {
 public:
  // What becomes of a frame of the daemon.
  enum class Fate { kDeliver, kDrop, kBreakStream };

  struct Options {
    std::string token = "";  // required of every call, if not empty
    std::string api_version = "1.0";
    FakeSession::Options session = {};
    // Decides on each frame, counted over all streams from 0.
    std::function<Fate(int64_t frame)> fate = [](int64_t) { return Fate::kDeliver; };
  };

  // A model of this name is created until the caller gives it up.
  static constexpr char kEndlessModel[] = "endless";

  explicit FakeServer(Options options);
  ~FakeServer() override;

  // 127.0.0.1:PORT.
  const std::string& target() const { return target_; }
  int port() const { return port_; }

  // The next call of `method` does its work, and then fails with `status`: its reply
  // is lost. Several are lost one after another.
  void LoseReply(const std::string& method, absl::Status status);

  int64_t call_count(const std::string& method) const;
  // Changes made: calls with different request ids.
  int64_t change_count() const;
  int64_t frame_count() const;
  uint64_t executed_through() const;

  // A tensor of ReadWeights is `bytes`; `corrupt`: not what its checksum says.
  void ServeWeight(std::string bytes, bool corrupt);

  grpc::Status GetCapabilities(grpc::ServerContext* context,
                               const v1::GetCapabilitiesRequest* request,
                               v1::Capabilities* response) override;
  grpc::Status CreateModel(grpc::ServerContext* context, const v1::CreateModelRequest* request,
                           grpc::ServerWriter<v1::CreateModelResponse>* writer) override;
  grpc::Status GetModel(grpc::ServerContext* context, const v1::GetModelRequest* request,
                        v1::Model* response) override;
  grpc::Status DeleteModel(grpc::ServerContext* context, const v1::DeleteModelRequest* request,
                           v1::DeleteModelResponse* response) override;
  grpc::Status ReadWeights(grpc::ServerContext* context, const v1::ReadWeightsRequest* request,
                           grpc::ServerWriter<v1::ReadWeightsResponse>* writer) override;
  grpc::Status Stream(grpc::ServerContext* context,
                      grpc::ServerReaderWriter<v1::ServerFrame, v1::ClientFrame>* stream) override;

 private:
  // Counts the call; not OK: its reply.
  grpc::Status Begin(const grpc::ServerContext& context, const std::string& method,
                     const std::string& request_id);
  grpc::Status End(const std::string& method);
  Fate NextFate();

  const Options options_;
  mutable Mutex mutex_;
  std::map<std::string, std::deque<absl::Status>> lost_replies_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int64_t> call_counts_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> request_ids_ ABSL_GUARDED_BY(mutex_);
  FakeSession session_ ABSL_GUARDED_BY(mutex_);
  int64_t frame_count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string weight_bytes_ ABSL_GUARDED_BY(mutex_);
  bool weight_corrupt_ ABSL_GUARDED_BY(mutex_) = false;
  int port_ = 0;
  std::string target_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CPP_FAKE_SERVER_H_
