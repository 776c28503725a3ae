/** A component that is rendered again only if its properties differ; none of them is a function made anew. */
import { Component, type ComponentClass, type FunctionComponent } from "preact";

export function memo<P extends object>(View: FunctionComponent<P>): ComponentClass<P> {
  return class extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      return Object.entries(next).some(([name, value]) => value !== this.props[name as keyof P]);
    }

    override render() {
      return <View {...(this.props as P)} />;
    }
  };
}
