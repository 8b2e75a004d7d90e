#include "clients/cpp/fake_server.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "proto/status/grpc_status.h"
#include "xxhash.h"

namespace planewise {
namespace {

constexpr size_t kWeightChunkBytes = 1000;

}  // namespace

FakeServer::FakeServer(Options options) : options_(std::move(options)), session_(options_.session) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(static_cast<v1::Models::Service*>(this));
  builder.RegisterService(static_cast<v1::Server::Service*>(this));
  builder.RegisterService(static_cast<v1::Sessions::Service*>(this));
  server_ = builder.BuildAndStart();
  target_ = absl::StrCat("127.0.0.1:", port_);
}

FakeServer::~FakeServer() {
  server_->Shutdown(std::chrono::system_clock::now());  // Cancels what is running.
  server_->Wait();
}

void FakeServer::LoseReply(const std::string& method, absl::Status status) {
  MutexLock lock(mutex_);
  lost_replies_[method].push_back(std::move(status));
}

int64_t FakeServer::call_count(const std::string& method) const {
  MutexLock lock(mutex_);
  const auto count = call_counts_.find(method);
  return count == call_counts_.end() ? 0 : count->second;
}

int64_t FakeServer::change_count() const {
  MutexLock lock(mutex_);
  return request_ids_.size();
}

int64_t FakeServer::frame_count() const {
  MutexLock lock(mutex_);
  return frame_count_;
}

uint64_t FakeServer::executed_through() const {
  MutexLock lock(mutex_);
  return session_.executed_through();
}

void FakeServer::ServeWeight(std::string bytes, bool corrupt) {
  MutexLock lock(mutex_);
  weight_bytes_ = std::move(bytes);
  weight_corrupt_ = corrupt;
}

grpc::Status FakeServer::Begin(const grpc::ServerContext& context, const std::string& method,
                               const std::string& request_id) {
  MutexLock lock(mutex_);
  ++call_counts_[method];
  const auto authorization = context.client_metadata().find("authorization");
  if (!options_.token.empty() && (authorization == context.client_metadata().end() ||
                                  authorization->second != "Bearer " + options_.token)) {
    return StatusToGrpc(Error(Reason::kUnauthenticated, "no valid token; present the daemon's"));
  }
  if (!request_id.empty()) request_ids_.insert(request_id);
  return grpc::Status::OK;
}

grpc::Status FakeServer::End(const std::string& method) {
  MutexLock lock(mutex_);
  std::deque<absl::Status>& lost = lost_replies_[method];
  if (lost.empty()) return grpc::Status::OK;
  const absl::Status status = lost.front();
  lost.pop_front();
  return StatusToGrpc(status);
}

grpc::Status FakeServer::GetCapabilities(grpc::ServerContext* context,
                                         const v1::GetCapabilitiesRequest* request,
                                         v1::Capabilities* response) {
  const grpc::Status begun = Begin(*context, "GetCapabilities", "");
  if (!begun.ok()) return begun;
  response->set_server_version(request->client_api_version());  // Shows what it was sent.
  response->set_api_version(options_.api_version);
  return End("GetCapabilities");
}

grpc::Status FakeServer::CreateModel(grpc::ServerContext* context,
                                     const v1::CreateModelRequest* request,
                                     grpc::ServerWriter<v1::CreateModelResponse>* writer) {
  const grpc::Status begun = Begin(*context, "CreateModel", request->request_id());
  if (!begun.ok()) return begun;
  v1::CreateModelResponse response;
  response.mutable_progress()->set_stage("quantize");
  response.mutable_progress()->set_total_bytes(100);
  for (const int64_t done_bytes : {50, 100}) {
    response.mutable_progress()->set_done_bytes(done_bytes);
    writer->Write(response);
  }
  if (request->name() == kEndlessModel) {
    while (!context->IsCancelled()) writer->Write(response);
    return grpc::Status::CANCELLED;
  }
  const grpc::Status end = End("CreateModel");
  if (!end.ok()) return end;
  response.mutable_model()->set_name(request->name());
  response.mutable_model()->set_planned_bytes(int64_t{1} << 40);
  writer->Write(response);
  return grpc::Status::OK;
}

grpc::Status FakeServer::GetModel(grpc::ServerContext* context, const v1::GetModelRequest* request,
                                  v1::Model* response) {
  const grpc::Status begun = Begin(*context, "GetModel", "");
  if (!begun.ok()) return begun;
  response->set_name(request->name());
  return End("GetModel");
}

grpc::Status FakeServer::DeleteModel(grpc::ServerContext* context,
                                     const v1::DeleteModelRequest* request,
                                     v1::DeleteModelResponse* response) {
  const grpc::Status begun = Begin(*context, "DeleteModel", request->request_id());
  if (!begun.ok()) return begun;
  response->set_freed_bytes(1);
  return End("DeleteModel");
}

grpc::Status FakeServer::ReadWeights(grpc::ServerContext* context,
                                     const v1::ReadWeightsRequest* request,
                                     grpc::ServerWriter<v1::ReadWeightsResponse>* writer) {
  const grpc::Status begun = Begin(*context, "ReadWeights", "");
  if (!begun.ok()) return begun;
  const grpc::Status end = End("ReadWeights");
  if (!end.ok()) return end;
  std::string bytes;
  bool corrupt = false;
  {
    MutexLock lock(mutex_);
    bytes = weight_bytes_;
    corrupt = weight_corrupt_;
  }
  for (const std::string& weight : request->weights()) {
    v1::ReadWeightsResponse header;
    header.mutable_header()->set_weight(weight);
    header.mutable_header()->set_version(3);
    header.mutable_header()->set_plane(v1::PLANE_ROW);
    header.mutable_header()->set_part(v1::PLANE_PART_PAYLOAD);
    header.mutable_header()->mutable_spec()->set_data_type(v1::DATA_TYPE_U8);
    header.mutable_header()->mutable_spec()->add_shape(bytes.size());
    header.mutable_header()->set_size_bytes(bytes.size());
    header.mutable_header()->set_checksum(XXH3_64bits(bytes.data(), bytes.size()) + corrupt);
    writer->Write(header);
    for (size_t offset = 0; offset < bytes.size(); offset += kWeightChunkBytes) {
      v1::ReadWeightsResponse chunk;
      chunk.mutable_chunk()->set_offset(offset);
      chunk.mutable_chunk()->set_data(bytes.substr(offset, kWeightChunkBytes));
      writer->Write(chunk);
    }
  }
  return grpc::Status::OK;
}

FakeServer::Fate FakeServer::NextFate() {
  MutexLock lock(mutex_);
  return options_.fate(frame_count_++);
}

grpc::Status FakeServer::Stream(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<v1::ServerFrame, v1::ClientFrame>* stream) {
  const grpc::Status begun = Begin(*context, "Stream", "");
  if (!begun.ok()) return begun;
  {
    MutexLock lock(mutex_);
    session_.OnStream();
  }
  v1::ClientFrame received;
  while (stream->Read(&received)) {
    absl::Status status;
    {
      MutexLock lock(mutex_);
      status = session_.OnFrame(received, received.chunk().data());
    }
    if (!status.ok()) return StatusToGrpc(status);
    while (true) {
      std::optional<FakeSession::Frame> next;
      {
        MutexLock lock(mutex_);
        next = session_.NextFrame();
      }
      if (!next) break;
      const Fate fate = NextFate();
      if (fate == Fate::kBreakStream) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "broken");
      if (fate == Fate::kDrop) continue;
      if (!next->data.empty()) next->header.mutable_chunk()->set_data(next->data);
      stream->Write(next->header);
    }
  }
  return grpc::Status::OK;
}

}  // namespace planewise
