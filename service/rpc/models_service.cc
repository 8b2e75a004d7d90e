#include "service/rpc/models_service.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/recipe/recipe_codec.h"
#include "proto/status/field_error.h"
#include "service/rpc/model_conversion.h"
#include "service/rpc/progress_stream.h"
#include "service/rpc/unary_call.h"
#include "service/rpc/weight_stream.h"

namespace planewise {
namespace {

// Models of one page of ListModels: a summary is some hundred bytes.
constexpr int kPageSizeMax = 1000;

// Progress and result of a call whose response is a oneof of the two.
template <typename Response>
ProgressCallback TellProgress(ProgressStream<Response>& stream) {
  return [&stream](const ProgressEvent& progress) {
    Response response;
    *response.mutable_progress() = ToProto(progress);
    stream.Tell(std::move(response));
  };
}

// Ends the stream with the response that `set` makes of the outcome.
template <typename Outcome, typename Response, typename Set>
DoneCallback<Outcome> EndWith(ProgressStream<Response>& stream, Set set) {
  return [&stream, set](absl::StatusOr<Outcome> outcome) {
    if (!outcome.ok()) return stream.End(outcome.status());
    Response response;
    set(*outcome, response);
    stream.End(std::move(response));
  };
}

}  // namespace

grpc::ServerWriteReactor<v1::CreateModelResponse>* ModelsService::CreateModel(
    grpc::CallbackServerContext* context, const v1::CreateModelRequest* request) {
  using Response = v1::CreateModelResponse;
  return StartProgress<Response>(
      environment_, *context, "Models.CreateModel",
      [this, request](Call& call, ProgressStream<Response>& stream) {
        absl::StatusOr<CreateModelSpec> spec = FromProto(*request);
        if (!spec.ok()) return stream.End(spec.status());
        const JobTicket ticket = catalog_.Create(
            call.principal(), *std::move(spec), TellProgress(stream),
            EndWith<ModelDescription>(stream, [](const ModelDescription& model, Response& last) {
              *last.mutable_model() = ToProto(model, ModelDetail::kFull);
            }));
        call.OnCancel([this, ticket] { catalog_.Abandon(ticket); });
      });
}

grpc::ServerUnaryReactor* ModelsService::GiveUp(grpc::CallbackServerContext* context,
                                                const v1::GiveUpRequest* request,
                                                v1::GiveUpResponse* response) {
  return StartUnary<v1::GiveUpResponse>(
      environment_, *context, CallKind::kExisting, "Models.GiveUp", *response,
      [this, request](Call& call, Reply<v1::GiveUpResponse> reply) {
        ReplyWith(std::move(reply), [](bool running) {
          v1::GiveUpResponse given_up;
          given_up.set_running(running);
          return given_up;
        })(catalog_.GiveUp(call.principal(), request->request_id()));
      });
}

grpc::ServerUnaryReactor* ModelsService::GetModel(grpc::CallbackServerContext* context,
                                                  const v1::GetModelRequest* request,
                                                  v1::Model* response) {
  return StartUnary<v1::Model>(
      environment_, *context, CallKind::kExisting, "Models.GetModel", *response,
      [this, request](Call&, Reply<v1::Model> reply) {
        ReplyWith(std::move(reply), [](const ModelDescription& model) {
          return ToProto(model, ModelDetail::kFull);
        })(catalog_.Describe(request->name()));
      });
}

grpc::ServerUnaryReactor* ModelsService::ListModels(grpc::CallbackServerContext* context,
                                                    const v1::ListModelsRequest* request,
                                                    v1::ListModelsResponse* response) {
  return StartUnary<v1::ListModelsResponse>(
      environment_, *context, CallKind::kExisting, "Models.ListModels", *response,
      [this, request](Call&, Reply<v1::ListModelsResponse> reply) {
        if (request->page_size() < 0 || request->page_size() > kPageSizeMax) {
          return std::move(reply)(InvalidField(
              "page_size", absl::StrCat(request->page_size()),
              absl::StrCat("1 to ", kPageSizeMax, ", or 0 for ", kPageSizeMax)));
        }
        const int limit = request->page_size() == 0 ? kPageSizeMax : request->page_size();
        // One more than asked for tells whether there is a next page. A page's
        // token is the last name of the page before.
        std::vector<ModelDescription> models = catalog_.List(request->page_token(), limit + 1);
        v1::ListModelsResponse page;
        if (models.size() > static_cast<size_t>(limit)) {
          models.resize(limit);
          page.set_next_page_token(models.back().name);
        }
        for (const ModelDescription& model : models) {
          *page.add_models() = ToProto(model, ModelDetail::kSummary);
        }
        std::move(reply)(std::move(page));
      });
}

grpc::ServerUnaryReactor* ModelsService::DeleteModel(grpc::CallbackServerContext* context,
                                                     const v1::DeleteModelRequest* request,
                                                     v1::DeleteModelResponse* response) {
  return StartUnary<v1::DeleteModelResponse>(
      environment_, *context, CallKind::kNew, "Models.DeleteModel", *response,
      [this, request](Call& call, Reply<v1::DeleteModelResponse> reply) {
        DeleteModelSpec spec;
        spec.name = request->name();
        spec.expected_version = WeightVersion(request->expected_version());
        spec.delete_stored = request->delete_stored();
        spec.request_id = request->request_id();
        catalog_.Delete(call.principal(), spec,
                        ReplyWith(std::move(reply), [](const DeleteOutcome& outcome) {
                          v1::DeleteModelResponse deleted;
                          deleted.set_freed_bytes(outcome.freed_bytes);
                          return deleted;
                        }));
      });
}

grpc::ServerUnaryReactor* ModelsService::ValidateModeSwitch(
    grpc::CallbackServerContext* context, const v1::ValidateModeSwitchRequest* request,
    v1::ValidateModeSwitchResponse* response) {
  using Response = v1::ValidateModeSwitchResponse;
  return StartUnary<Response>(
      environment_, *context, CallKind::kExisting, "Models.ValidateModeSwitch", *response,
      [this, request](Call&, Reply<Response> reply) {
        absl::StatusOr<Recipe> recipe = FromProto(request->target(), "target");
        if (!recipe.ok()) return std::move(reply)(recipe.status());
        const SwitchTarget target{*recipe, request->release_unused_planes()};
        ReplyWith(std::move(reply), [](const ValidationOutcome& outcome) {
          return ToProto(outcome);
        })(catalog_.Validate(request->name(), target));
      });
}

grpc::ServerUnaryReactor* ModelsService::SwitchMode(grpc::CallbackServerContext* context,
                                                    const v1::SwitchModeRequest* request,
                                                    v1::SwitchModeResponse* response) {
  return StartUnary<v1::SwitchModeResponse>(
      environment_, *context, CallKind::kNew, "Models.SwitchMode", *response,
      [this, request](Call& call, Reply<v1::SwitchModeResponse> reply) {
        absl::StatusOr<SwitchSpec> spec = FromProto(*request);
        if (!spec.ok()) return std::move(reply)(spec.status());
        const JobTicket ticket = catalog_.Switch(
            call.principal(), *std::move(spec),
            ReplyWith(std::move(reply),
                      [](const SwitchOutcome& outcome) { return ToProto(outcome); }));
        call.OnCancel([this, ticket] { catalog_.Abandon(ticket); });
      });
}

grpc::ServerWriteReactor<v1::SaveModelResponse>* ModelsService::SaveModel(
    grpc::CallbackServerContext* context, const v1::SaveModelRequest* request) {
  using Response = v1::SaveModelResponse;
  return StartProgress<Response>(
      environment_, *context, "Models.SaveModel",
      [this, request](Call& call, ProgressStream<Response>& stream) {
        const JobTicket ticket = catalog_.Save(
            call.principal(), request->name(), request->request_id(), TellProgress(stream),
            EndWith<SaveOutcome>(stream, [](const SaveOutcome& outcome, Response& last) {
              *last.mutable_result() = ToProto(outcome);
            }));
        call.OnCancel([this, ticket] { catalog_.Abandon(ticket); });
      });
}

grpc::ServerWriteReactor<v1::VerifyModelResponse>* ModelsService::VerifyModel(
    grpc::CallbackServerContext* context, const v1::VerifyModelRequest* request) {
  using Response = v1::VerifyModelResponse;
  return StartProgress<Response>(
      environment_, *context, "Models.VerifyModel",
      [this, request](Call& call, ProgressStream<Response>& stream) {
        const JobTicket ticket = catalog_.Verify(
            call.principal(), request->name(), TellProgress(stream),
            EndWith<VerifyOutcome>(stream, [](const VerifyOutcome& outcome, Response& last) {
              *last.mutable_result() = ToProto(outcome);
            }));
        call.OnCancel([this, ticket] { catalog_.Abandon(ticket); });
      });
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* ModelsService::ReadWeights(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  return StartReadWeights(environment_, *context, *request, catalog_, chunk_bytes_);
}

}  // namespace planewise
