import { useState } from "react";
import { createRoot } from "react-dom/client";
import "rummikub-board";

const TABLE = "R7 R8 R9 | K3 B3 O3";

/** A judge of your own: melds have three tiles. The service knows the rules. */
function judge({ table }) {
  const melds = table.map(({ length }) => (length < 3 ? { isLegal: false, text: "At least three tiles" } : { isLegal: true }));
  return { isLegal: melds.every(({ isLegal }) => isLegal), melds };
}

function App() {
  const [rack, setRack] = useState(["R10", "J", "K5"]);
  const [played, setPlayed] = useState([]);
  return (
    <>
      <rummikub-board table={TABLE} rack={rack} judge={judge} onchange={({ detail }) => setPlayed(detail.played)}>
        <button slot="actions" onClick={() => setRack([...rack, "B1"])}>
          Draw
        </button>
      </rummikub-board>
      <p>You play: {played.join(" ") || "nothing"}</p>
    </>
  );
}

createRoot(document.querySelector("#root")).render(<App />);
