/** A link as a QR code, which a phone's camera reads. */
// Files that are loaded later share all of the page's start, so that it stays one chunk.
import "./app.js";
import { encode } from "uqr";
import { t } from "../i18n/index.js";

export function QrCode({ text }: { text: string }) {
  const { data, size } = encode(text, { border: 2 });
  const path = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : []))).join("");
  return (
    <svg class="qr-code" role="img" aria-label={t("qrCode")} viewBox={`0 0 ${size} ${size}`} shape-rendering="crispEdges">
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}
