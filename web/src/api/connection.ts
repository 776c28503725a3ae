/** The connection of the page: gRPC-Web at the page's own origin, seen by the developer's drawer. */
import { connect } from "rummikub-client";
import { Inspector } from "./inspector.js";

export const inspector = new Inspector();
export const service = connect(undefined, { interceptors: [inspector.interceptor] });
