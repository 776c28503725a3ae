/**
 * A gRPC-Web server before a gRPC server, to check the client's gRPC-Web without Envoy: prints its address.
 * Usage: gateway.js <target>
 */
import { createServer } from "node:http";
import { connectNodeAdapter, createGrpcTransport } from "@connectrpc/connect-node";
import { ConnectError, createClient, type ConnectRouter, type ServiceImpl } from "@connectrpc/connect";
import type { DescService, Message } from "@bufbuild/protobuf";
import {
  AnalysisService,
  ChallengeService,
  GameService,
  PuzzleService,
  RecordService,
  TurnService,
  ValidationService,
} from "rummikub-client";

type Context = { requestHeader: Headers; signal: AbortSignal };

const transport = createGrpcTransport({ baseUrl: `http://${process.argv[2]}` });

/** Forwards each RPC with the caller's token; a refused call with its status details. */
function forward<S extends DescService>(router: ConnectRouter, service: S): void {
  type Call = (request: Message, options: object) => Promise<Message> | AsyncIterable<Message>;
  const client = createClient(service, transport) as unknown as Record<string, Call>;
  const handlers = service.methods.map(({ localName }) => [
    localName,
    (request: Message, { requestHeader, signal }: Context) => {
      const token = requestHeader.get("authorization");
      return client[localName]!(request, { signal, headers: token === null ? {} : { authorization: token } });
    },
  ]);
  router.service(service, Object.fromEntries(handlers) as Partial<ServiceImpl<S>>);
}

const server = createServer(
  connectNodeAdapter({
    routes(router) {
      for (const service of [
        GameService,
        TurnService,
        ChallengeService,
        ValidationService,
        AnalysisService,
        PuzzleService,
        RecordService,
      ])
        forward(router, service);
    },
    interceptors: [
      (next) => async (request) => {
        try {
          return await next(request);
        } catch (reason) {
          const error = ConnectError.from(reason);
          const forwarded = new ConnectError(error.rawMessage, error.code);
          forwarded.details = error.details;
          throw forwarded;
        }
      },
    ],
  }),
);
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  if (typeof address === "object" && address !== null) console.log(`127.0.0.1:${address.port}`);
});
