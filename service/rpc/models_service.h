#ifndef PLANEWISE_SERVICE_RPC_MODELS_SERVICE_H_
#define PLANEWISE_SERVICE_RPC_MODELS_SERVICE_H_
// planewise.v1.Models: each call converts its request, asks the catalog on the
// executor, and converts the answer.
//
// Not here: what the calls mean (service/weights/model_catalog.h).

#include <cstdint>

#include "planewise/v1/models.grpc.pb.h"
#include "service/rpc/call.h"
#include "service/weights/model_catalog.h"

namespace planewise {

// ReadWeights carries bytes outside protobuf: its method takes ByteBuffers.
using ModelsBase = v1::Models::WithRawCallbackMethod_ReadWeights<
    v1::Models::WithCallbackMethod_CreateModel<v1::Models::WithCallbackMethod_GetModel<
        v1::Models::WithCallbackMethod_ListModels<v1::Models::WithCallbackMethod_DeleteModel<
            v1::Models::WithCallbackMethod_ValidateModeSwitch<
                v1::Models::WithCallbackMethod_SwitchMode<v1::Models::WithCallbackMethod_SaveModel<
                    v1::Models::WithCallbackMethod_VerifyModel<
                        v1::Models::WithCallbackMethod_GiveUp<v1::Models::Service>>>>>>>>>>;

class ModelsService final : public ModelsBase {
 public:
  // `catalog` outlives the service and its calls. `chunk_bytes`: of ReadWeights.
  ModelsService(const RpcEnvironment& environment, ModelCatalog& catalog, int64_t chunk_bytes)
      : environment_(environment), catalog_(catalog), chunk_bytes_(chunk_bytes) {}

  grpc::ServerWriteReactor<v1::CreateModelResponse>* CreateModel(
      grpc::CallbackServerContext* context, const v1::CreateModelRequest* request) override;
  grpc::ServerUnaryReactor* GiveUp(grpc::CallbackServerContext* context,
                                   const v1::GiveUpRequest* request,
                                   v1::GiveUpResponse* response) override;
  grpc::ServerUnaryReactor* GetModel(grpc::CallbackServerContext* context,
                                     const v1::GetModelRequest* request,
                                     v1::Model* response) override;
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const v1::ListModelsRequest* request,
                                       v1::ListModelsResponse* response) override;
  grpc::ServerUnaryReactor* DeleteModel(grpc::CallbackServerContext* context,
                                        const v1::DeleteModelRequest* request,
                                        v1::DeleteModelResponse* response) override;
  grpc::ServerUnaryReactor* ValidateModeSwitch(grpc::CallbackServerContext* context,
                                               const v1::ValidateModeSwitchRequest* request,
                                               v1::ValidateModeSwitchResponse* response) override;
  grpc::ServerUnaryReactor* SwitchMode(grpc::CallbackServerContext* context,
                                       const v1::SwitchModeRequest* request,
                                       v1::SwitchModeResponse* response) override;
  grpc::ServerWriteReactor<v1::SaveModelResponse>* SaveModel(
      grpc::CallbackServerContext* context, const v1::SaveModelRequest* request) override;
  grpc::ServerWriteReactor<v1::VerifyModelResponse>* VerifyModel(
      grpc::CallbackServerContext* context, const v1::VerifyModelRequest* request) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* ReadWeights(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) override;

 private:
  const RpcEnvironment environment_;
  ModelCatalog& catalog_;
  const int64_t chunk_bytes_;
};

}  // namespace planewise

#endif  // PLANEWISE_SERVICE_RPC_MODELS_SERVICE_H_
