#include "service/rpc/weight_stream.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "core/base/error.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "planewise/v1/models.pb.h"
#include "proto/frame/frame_codec.h"
#include "service/rpc/model_conversion.h"
#include "service/rpc/tensor_conversion.h"

namespace planewise {
namespace {

v1::ReadWeightsResponse HeaderOf(const WeightPart& part) {
  v1::ReadWeightsResponse response;
  v1::ReadTensorHeader& header = *response.mutable_header();
  header.set_weight(part.weight);
  header.set_version(part.version.value());
  header.set_plane(ToProto(part.plane));
  header.set_part(ToProto(part.part));
  header.mutable_spec()->set_data_type(ToProto(part.dtype));
  for (const int64_t size : part.shape) header.mutable_spec()->add_shape(size);
  header.set_size_bytes(static_cast<int64_t>(part.bytes.size()));
  header.set_checksum(part.checksum);
  return response;
}

// Deletes itself. All but gRPC's reactions runs on the executor.
class WeightStream final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  WeightStream(std::shared_ptr<Call> call, int64_t chunk_bytes)
      : call_(std::move(call)), chunk_bytes_(static_cast<size_t>(chunk_bytes)) {}

  void Start(absl::StatusOr<std::unique_ptr<WeightReader>> reader) {
    if (!reader.ok()) return End(reader.status());
    reader_ = *std::move(reader);
    call_->OnCancel([this] { cancelled_ = true; });
    ReadPart();
  }

  void End(const absl::Status& status) {
    reader_.reset();  // its lease ends on the executor
    Finish(call_->Close(status));
  }

  void OnWriteDone(bool ok) override {
    call_->executor().Post([this, ok] {
      cancelled_ = cancelled_ || !ok;
      WriteNext();
    });
  }
  void OnCancel() override { call_->PostCancel(); }
  void OnDone() override { delete this; }

 private:
  void ReadPart() {
    reader_->Next([this](absl::StatusOr<std::optional<WeightPart>> part) {
      if (!part.ok()) return End(part.status());
      if (!part->has_value()) return End(absl::OkStatus());
      part_ = **std::move(part);
      written_bytes_ = 0;
      Write(MakeFrame(HeaderOf(part_)));
    });
  }

  void WriteNext() {
    if (cancelled_) return End(Error(Reason::kCancelled, "the client gave ReadWeights up"));
    if (written_bytes_ == part_.bytes.size()) {
      part_ = WeightPart();
      return ReadPart();
    }
    const size_t size = std::min(chunk_bytes_, part_.bytes.size() - written_bytes_);
    const absl::string_view bytes(
        reinterpret_cast<const char*>(part_.bytes.data()) + written_bytes_, size);
    v1::ReadWeightsResponse header;
    header.mutable_chunk()->set_offset(static_cast<int64_t>(written_bytes_));
    written_bytes_ += size;
    Write(MakeFrame(header, LendSlice(bytes, [owner = part_.owner] {})));
  }

  // A copy of a ByteBuffer shares its slices.
  void Write(const grpc::ByteBuffer& frame) {
    frame_ = frame;
    StartWrite(&frame_);
  }

  const std::shared_ptr<Call> call_;
  const size_t chunk_bytes_;
  std::unique_ptr<WeightReader> reader_;
  WeightPart part_;
  size_t written_bytes_ = 0;  // of part_
  grpc::ByteBuffer frame_;    // being written
  bool cancelled_ = false;
};

absl::StatusOr<ReadWeightsSpec> Decode(const grpc::ByteBuffer& bytes) {
  v1::ReadWeightsRequest request;
  grpc::ByteBuffer copy = bytes;
  const grpc::Status parsed =
      grpc::SerializationTraits<v1::ReadWeightsRequest>::Deserialize(&copy, &request);
  if (!parsed.ok()) {
    return Error(Reason::kInvalidRequest, "the request is no encoded ReadWeightsRequest");
  }
  return FromProto(request);
}

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* StartReadWeights(const RpcEnvironment& environment,
                                                             grpc::CallbackServerContext& context,
                                                             const grpc::ByteBuffer& request,
                                                             ModelCatalog& catalog,
                                                             int64_t chunk_bytes) {
  std::shared_ptr<Call> call =
      Call::Begin(environment, context, CallKind::kNew, "Models.ReadWeights");
  auto* stream = new WeightStream(call, chunk_bytes);
  absl::StatusOr<ReadWeightsSpec> spec = Decode(request);
  const absl::Status refusal = call->admission().ok() ? spec.status() : call->admission();
  if (!refusal.ok()) {
    stream->End(refusal);
    return stream;
  }
  call->executor().Post([call, stream, &catalog, spec = *std::move(spec)] {
    stream->Start(catalog.ReadWeights(call->principal(), spec));
  });
  return stream;
}

}  // namespace planewise
